// SPDX-License-Identifier: Apache-2.0
#include "runtime/architectures.hpp"

#include <charconv>

namespace backplane::cuda {

namespace {

bool runs(std::string_view architecture, int major, int minor) {
  const std::size_t line = architecture.find('_');
  if (line == std::string_view::npos) return false;
  const bool is_ptx = architecture.substr(0, line) == "compute";
  int number = 0;
  const char* const end = architecture.data() + architecture.size();
  // A suffix such as the `a` of sm_90a restricts kernels to exactly one compute capability.
  const auto [last, error] = std::from_chars(architecture.data() + line + 1, end, number);
  if (error != std::errc{}) return false;
  const int capability = major * 10 + minor;
  if (last != end) return capability == number;
  return capability >= number && (is_ptx || major == number / 10);
}

}  // namespace

bool can_run(std::string_view architectures, int major, int minor) {
  while (!architectures.empty()) {
    const std::size_t comma = architectures.find(',');
    if (runs(architectures.substr(0, comma), major, minor)) return true;
    architectures.remove_prefix(comma == std::string_view::npos ? architectures.size() : comma + 1);
  }
  return false;
}

}  // namespace backplane::cuda
