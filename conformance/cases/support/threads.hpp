// SPDX-License-Identifier: Apache-2.0
// Runs a function on several threads at once. After all threads have exited, throws the first
// exception that a thread has thrown.
#pragma once

#include <functional>

#include "harness/context.hpp"

namespace backplane::conformance {

void in_threads(Context& context, unsigned count, const std::function<void(unsigned index)>& body);

}  // namespace backplane::conformance
