// SPDX-License-Identifier: Apache-2.0
// Runs one case in this process, measures its time, catches its exceptions, and checks the thread's
// state.
#pragma once

#include "context.hpp"
#include "run.hpp"
#include "thread_state.hpp"

namespace backplane::conformance {

Result run_case(Session& session, const Case& which);

// Disables MALLOC_PERTURB_, which `meson test` sets so that malloc fills all new memory with a pattern. Cases with
// buffers of several gigabytes need untouched pages. A process calls this function before its first case.
void keep_pages_untouched();

}  // namespace backplane::conformance
