// SPDX-License-Identifier: Apache-2.0
// One case in this process, and what surrounds it: time, exceptions, the state of the thread.
#pragma once

#include "context.hpp"
#include "run.hpp"
#include "thread_state.hpp"

namespace backplane::conformance {

Result run_case(Session& session, const Case& which);

}  // namespace backplane::conformance
