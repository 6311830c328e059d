// SPDX-License-Identifier: Apache-2.0
// The ways to exit that cases test, each in its own process (probe.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace backplane::conformance {

// An exit status that no other program or crash uses.
inline constexpr int kProbeSucceeded = 87;

struct ProbeRow {
  const char* name;
  void (*run)(const std::string& path,
              uint32_t device_index);  // exits, or returns so that main returns
  bool by_host;                        // loads the plugin through the host library
};
std::span<const ProbeRow> probe_rows();
// Never returns.
[[noreturn]] void do_probe(std::string_view name, const std::string& path, uint32_t device_index);

}  // namespace backplane::conformance
