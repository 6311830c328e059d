// SPDX-License-Identifier: Apache-2.0
// Table of the probes. Each probe runs in its own process and exits in a different way (probe.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace backplane::conformance {

// Exit status of a probe that succeeded. The value is unusual, so that no other exit or crash looks
// like success.
inline constexpr int kProbeSucceeded = 87;

struct ProbeRow {
  const char* name;
  void (*run)(const std::string& path,
              uint32_t device_index);  // must exit the process; a return fails the probe
  bool by_host;                        // whether `run` loads the plugin through the host library
};
std::span<const ProbeRow> probe_rows();
// Runs the named probe in this process.
[[noreturn]] void do_probe(std::string_view name, const std::string& path, uint32_t device_index,
                           std::string_view argument);

}  // namespace backplane::conformance
