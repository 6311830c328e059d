// SPDX-License-Identifier: Apache-2.0
// Several threads that do the same, started together; the first failure of one ends the case.
#pragma once

#include <functional>

#include "harness/context.hpp"

namespace backplane::conformance {

void in_threads(Context& context, unsigned count, const std::function<void(unsigned index)>& body);

}  // namespace backplane::conformance
