// SPDX-License-Identifier: Apache-2.0
#include "bench/process_memory.hpp"

#include <fstream>
#include <string>

namespace tool {
namespace {

std::optional<uint64_t> status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    uint64_t kib = 0;
    if (word == key && status >> kib) return kib * 1024;
  }
  return {};
}

}  // namespace

PeakMemory::PeakMemory() {
  std::ofstream clear("/proc/self/clear_refs");
  if (clear << "5" << std::flush) before_ = status_bytes("VmRSS:");
}

std::optional<uint64_t> PeakMemory::growth() const {
  const std::optional<uint64_t> peak = status_bytes("VmHWM:");
  if (!before_ || !peak) return {};
  return *peak > *before_ ? *peak - *before_ : 0;
}

}  // namespace tool
