// SPDX-License-Identifier: Apache-2.0
// Detects whether the process was forked from a process that had started the driver. A driver does
// not work in forked children.
#pragma once

#include <backplane/kit/error.hpp>

namespace backplane::gpu_host {

// Call this function when the driver has started.
void watch_forks();
// Returns DEVICE_LOST, with a message that names the remedy, in a child of a process that had started
// the driver. Otherwise returns OK.
kit::Status after_fork(const char* plugin);

}  // namespace backplane::gpu_host
