// SPDX-License-Identifier: Apache-2.0
// Size classes of the caching allocator. Up to 4 KiB, the step between classes is 512 bytes. Up to
// 1 MiB, the step is 1/8 of the next lower power of two. Above 1 MiB, the step is 1/16 of that
// power of two. Rounding up loses at most 12.5 % above 4 KiB, and 6.25 % above 1 MiB.
#pragma once

#include <bit>
#include <cstdint>

namespace backplane::core {

class SizeClass {
 public:
  static constexpr uint64_t kQuantum = 512;
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 47;
  static constexpr uint32_t kCount = 8 + 8 * 8 + 16 * 27;

  // Returns the smallest class whose size is at least `bytes`. `bytes` is 1 to kMaxBytes.
  static constexpr uint32_t holding(uint64_t bytes) noexcept {
    if (bytes <= kFirstOctave) return static_cast<uint32_t>((bytes - 1) / kQuantum);
    // `octave` is such that 2^octave < bytes <= 2^(octave + 1).
    const auto octave = static_cast<uint32_t>(std::bit_width(bytes - 1)) - 1;
    const uint32_t step_log2 = octave - (octave < 20 ? 3 : 4);
    const auto step = static_cast<uint32_t>((bytes - 1 - (uint64_t{1} << octave)) >> step_log2);
    return octave < 20 ? 8 + (octave - 12) * 8 + step : 72 + (octave - 20) * 16 + step;
  }
  // Returns the largest class whose size is at most `bytes`. `bytes` is a multiple of kQuantum.
  static constexpr uint32_t within(uint64_t bytes) noexcept {
    const uint32_t index = holding(bytes);
    return size(index) <= bytes ? index : index - 1;
  }
  static constexpr uint64_t size(uint32_t index) noexcept {
    if (index < 8) return (index + 1) * kQuantum;
    if (index < 72) return steps(12 + (index - 8) / 8, (index - 8) % 8 + 1, 3);
    return steps(20 + (index - 72) / 16, (index - 72) % 16 + 1, 4);
  }

 private:
  static constexpr uint64_t kFirstOctave = 4096;
  static constexpr uint64_t steps(uint32_t octave, uint64_t number, uint32_t per_octave_log2) noexcept {
    return (uint64_t{1} << octave) + (number << (octave - per_octave_log2));
  }
};

}  // namespace backplane::core
