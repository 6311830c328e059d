// SPDX-License-Identifier: Apache-2.0
// A process of its own, for what would end a case's worker: how a process with the plugin in it exits. It is this program
// again, from its file, so that no driver finds itself in the child of a fork.
#pragma once

#include <cstdint>
#include <string>

namespace backplane::conformance {

struct ProbeEnd {
  bool ok = false;    // the probe did what it should and the process ended as it should
  std::string how{};  // "signal 11", "exit status 1", "no end within 20 seconds"
};
// What is done there is named by `probe`; see probes.cpp.
ProbeEnd run_probe(const std::string& probe, const std::string& path, uint32_t device_index);

// First thing in the main of a program that runs cases: if the program was started as a probe, this is all that it does.
void serve_probe(int argc, char** argv);

}  // namespace backplane::conformance
