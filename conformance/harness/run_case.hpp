// SPDX-License-Identifier: Apache-2.0
// Runs one case in this process, measures its time, catches its exceptions, and checks the thread's
// state.
#pragma once

#include "context.hpp"
#include "run.hpp"
#include "thread_state.hpp"

namespace backplane::conformance {

Result run_case(Session& session, const Case& which);

}  // namespace backplane::conformance
