// SPDX-License-Identifier: Apache-2.0
// Runs one case in this process: measures time, catches exceptions, checks the state of the thread.
#pragma once

#include "context.hpp"
#include "run.hpp"
#include "thread_state.hpp"

namespace backplane::conformance {

Result run_case(Session& session, const Case& which);

}  // namespace backplane::conformance
