// SPDX-License-Identifier: Apache-2.0
// Detects that the process is a child whose parent had started the driver. A driver does not survive fork().
#pragma once

#include <backplane/kit/error.hpp>

namespace backplane::gpu_host {

// Call this function when the driver has started.
void watch_forks();
// Returns OK, or in a child of a process that had started the driver a status with the remedy.
kit::Status after_fork(const char* plugin);

}  // namespace backplane::gpu_host
