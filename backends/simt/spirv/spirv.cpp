// SPDX-License-Identifier: Apache-2.0
#include "spirv/spirv.hpp"

#include <cstring>

namespace backplane::simt {

namespace {

constexpr uint32_t kMagicNumber = 0x07230203, kHeaderWords = 5;
constexpr uint32_t kOpEntryPoint = 15, kOpExecutionMode = 16, kOpCapability = 17, kSubgroupSize = 35;
constexpr uint32_t kFloat16 = 9, kFloat64 = 10;  // operands of OpCapability

// Returns the name of an entry point, which begins at the fourth word of the instruction.
std::string_view name_in(std::span<const uint32_t> instruction) {
  if (instruction.size() < 4) return {};
  const auto* text = reinterpret_cast<const char*>(instruction.data() + 3);
  return {text, ::strnlen(text, (instruction.size() - 3) * sizeof(uint32_t))};
}

}  // namespace

std::vector<uint32_t> single_kernel(std::span<const uint32_t> module, std::string_view function, uint32_t width) {
  if (module.size() < kHeaderWords || module[0] != kMagicNumber) return {};
  std::vector<uint32_t> out(module.begin(), module.begin() + kHeaderWords);
  out.reserve(module.size());
  uint32_t kept = 0;  // the id of the function, or 0 until it is found
  for (std::size_t at = kHeaderWords; at < module.size();) {
    const std::size_t words = module[at] >> 16;
    if (words == 0 || words > module.size() - at) return {};
    const std::span<const uint32_t> instruction = module.subspan(at, words);
    at += words;
    const uint32_t operation = instruction[0] & 0xFFFFu;
    if (operation == kOpEntryPoint) {
      if (name_in(instruction) != function) continue;
      kept = instruction[2];
    }
    // Entry points precede execution modes.
    const bool is_mode = operation == kOpExecutionMode && words >= 3;
    if (is_mode && instruction[1] != kept) continue;
    const bool is_width = is_mode && words == 4 && instruction[2] == kSubgroupSize;
    out.insert(out.end(), instruction.begin(), instruction.end());
    if (is_width) out.back() = width;
  }
  return kept == 0 ? std::vector<uint32_t>{} : out;
}

NumericTypes types_of(std::span<const uint32_t> module) {
  NumericTypes out;
  // Capabilities are the first instructions of a module, and have two words each.
  for (std::size_t at = kHeaderWords; at + 1 < module.size() && module[at] == (2u << 16 | kOpCapability); at += 2) {
    out.f16 |= module[at + 1] == kFloat16;
    out.f64 |= module[at + 1] == kFloat64;
  }
  return out;
}

}  // namespace backplane::simt
