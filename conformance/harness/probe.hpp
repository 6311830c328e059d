// SPDX-License-Identifier: Apache-2.0
// Runs probes, which test how a process that uses the plugin exits. Each probe runs in a separate
// process, because a probe ends its process. The process executes this program again, because a
// driver may fail in a forked child.
#pragma once

#include <cstdint>
#include <string>

namespace backplane::conformance {

struct ProbeEnd {
  bool ok = false;  // the probe succeeded and the process exited normally
  // How the process ended, for example "signal 11", "exit status 1", "no end within 20 seconds".
  std::string how{};
};
// Runs the probe with the name `probe` (probes.cpp) in a new process. The process inherits the
// descriptors that are not closed on exec. `argument` is for probes that take one.
ProbeEnd run_probe(const std::string& probe, const std::string& path, uint32_t device_index,
                   const std::string& argument = "");

// Must be the first call in main. If the program was started as a probe, runs the probe and exits.
void serve_probe(int argc, char** argv);

}  // namespace backplane::conformance
