// SPDX-License-Identifier: Apache-2.0
// Runs a function on several threads at once. The first failure ends the case.
#pragma once

#include <functional>

#include "harness/context.hpp"

namespace backplane::conformance {

void in_threads(Context& context, unsigned count, const std::function<void(unsigned index)>& body);

}  // namespace backplane::conformance
