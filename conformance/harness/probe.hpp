// SPDX-License-Identifier: Apache-2.0
// Runs a separate process for checks that would end the worker: how a process with the plugin
// exits. It executes this program again, so that no driver runs in the child of a fork.
#pragma once

#include <cstdint>
#include <string>

namespace backplane::conformance {

struct ProbeEnd {
  bool ok = false;    // the probe succeeded and the process exited normally
  std::string how{};  // "signal 11", "exit status 1", "no end within 20 seconds"
};
// `probe` names the action (probes.cpp).
ProbeEnd run_probe(const std::string& probe, const std::string& path, uint32_t device_index);

// Must be the first call in main. If the program was started as a probe, runs it and exits.
void serve_probe(int argc, char** argv);

}  // namespace backplane::conformance
