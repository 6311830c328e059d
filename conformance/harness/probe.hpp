// SPDX-License-Identifier: Apache-2.0
// Runs checks that would end the worker in a separate process: how does a process that uses the
// plugin exit? The probe executes this program again, since no driver may run in the child of a
// fork.
#pragma once

#include <cstdint>
#include <string>

namespace backplane::conformance {

struct ProbeEnd {
  bool ok = false;  // the probe succeeded and the process exited normally
  // how the process ended: "signal 11", "exit status 1", "no end within 20 seconds"
  std::string how{};
};
// `probe` names the action (probes.cpp).
ProbeEnd run_probe(const std::string& probe, const std::string& path, uint32_t device_index);

// Must be the first call in main. If the program was started as a probe, runs it and exits.
void serve_probe(int argc, char** argv);

}  // namespace backplane::conformance
