// SPDX-License-Identifier: Apache-2.0
// The ways to exit that cases try, each in a process of its own (probe.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace backplane::conformance {

// Unlike the status of any other program or accident.
inline constexpr int kProbeSucceeded = 87;

struct ProbeRow {
  const char* name;
  void (*run)(const std::string& path,
              uint32_t device_index);  // ends the process, or returns to a plain return of main
  bool by_host;                        // through the host library
};
std::span<const ProbeRow> probe_rows();
// Never returns.
[[noreturn]] void do_probe(std::string_view name, const std::string& path, uint32_t device_index);

}  // namespace backplane::conformance
