// SPDX-License-Identifier: Apache-2.0
#include "runtime/float_controls.hpp"

#include <algorithm>
#include <cstring>

namespace backplane::vulkan {

namespace {

constexpr uint32_t kHeaderWords = 5;
constexpr uint32_t kVersionWord = 1, kVersion14 = 0x00010400;  // from SPIR-V 1.4 on, modes need no extension
constexpr uint32_t kOpExtension = 10, kOpEntryPoint = 15, kOpExecutionMode = 16, kOpCapability = 17;
// SPIR-V capabilities.
constexpr uint32_t kDenormPreserve = 4464, kSignedZeroInfNanPreserve = 4466, kRoundingModeRTE = 4467;
// SPIR-V execution modes.
constexpr uint32_t kModeDenormPreserve = 4459, kModeSignedZeroInfNanPreserve = 4461, kModeRoundingModeRTE = 4462;
constexpr uint32_t kWidth = 32;

constexpr uint32_t head(uint32_t words, uint32_t opcode) { return words << 16 | opcode; }

void add_capability(std::vector<uint32_t>& out, uint32_t capability) {
  out.insert(out.end(), {head(2, kOpCapability), capability});
}

void add_extension(std::vector<uint32_t>& out) {
  constexpr char kName[28] = "SPV_KHR_float_controls";  // zeros pad the name to whole words
  constexpr uint32_t kWords = sizeof("SPV_KHR_float_controls") / 4 + 1;
  static_assert(kWords * 4 <= sizeof(kName));
  out.push_back(head(kWords + 1, kOpExtension));
  for (uint32_t i = 0; i < kWords; ++i) {
    uint32_t word = 0;
    std::memcpy(&word, kName + i * 4, sizeof(word));
    out.push_back(word);
  }
}

}  // namespace

std::vector<uint32_t> with_float_controls(std::span<const uint32_t> module, const FloatControls& controls) {
  std::vector<uint32_t> out(module.begin(), module.begin() + kHeaderWords);
  struct Mode {
    bool requested;
    uint32_t capability, mode;
  };
  const Mode modes[] = {{controls.preserve_subnormals_f32, kDenormPreserve, kModeDenormPreserve},
                        {controls.preserve_nan_f32, kSignedZeroInfNanPreserve, kModeSignedZeroInfNanPreserve},
                        {controls.round_to_even_f32, kRoundingModeRTE, kModeRoundingModeRTE}};
  if (std::ranges::none_of(modes, &Mode::requested)) return {module.begin(), module.end()};
  bool capabilities_done = false, modes_done = false;
  uint32_t entry = 0;
  for (std::size_t at = kHeaderWords; at < module.size();) {
    const uint32_t opcode = module[at] & 0xFFFFu, words = module[at] >> 16;
    if (!capabilities_done && opcode != kOpCapability) {
      capabilities_done = true;
      for (const Mode& each : modes) {
        if (each.requested) add_capability(out, each.capability);
      }
      if (module[kVersionWord] < kVersion14) add_extension(out);
    }
    if (entry != 0 && !modes_done && opcode != kOpEntryPoint) {
      modes_done = true;
      for (const Mode& each : modes) {
        if (each.requested) out.insert(out.end(), {head(4, kOpExecutionMode), entry, each.mode, kWidth});
      }
    }
    if (opcode == kOpEntryPoint) entry = module[at + 2];
    out.insert(out.end(), module.begin() + static_cast<std::ptrdiff_t>(at),
               module.begin() + static_cast<std::ptrdiff_t>(at + words));
    at += words;
  }
  return out;
}

}  // namespace backplane::vulkan
