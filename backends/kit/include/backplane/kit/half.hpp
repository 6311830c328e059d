// SPDX-License-Identifier: Apache-2.0
// f16 and bf16 in software. Widening is exact. Narrowing rounds once, to nearest even. Subnormals
// are preserved. The code has no branches, so that loops vectorise.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace backplane::kit {

constexpr uint32_t select_bits(bool condition, uint32_t yes, uint32_t no) { return condition ? yes : no; }

constexpr float f16_to_f32(uint16_t half) {
  constexpr uint32_t kRebias = (127 - 15) << 23;
  const uint32_t shifted = (half & 0x7FFFu) << 13;
  const uint32_t exponent = shifted & 0x0F800000u;
  const uint32_t normal = shifted + kRebias;
  const float tiny = std::bit_cast<float>(normal + (1u << 23)) - std::bit_cast<float>(uint32_t{113} << 23);
  const uint32_t special = normal + kRebias;  // infinity or NaN
  uint32_t bits = select_bits(exponent == 0, std::bit_cast<uint32_t>(tiny), normal);
  bits = select_bits(exponent == 0x0F800000u, special, bits);
  return std::bit_cast<float>(bits | (half & 0x8000u) << 16);
}

constexpr uint16_t f32_to_f16(float value) {
  const uint32_t given = std::bit_cast<uint32_t>(value);
  const uint32_t bits = given & 0x7FFFFFFFu;
  const uint32_t odd = bits >> 13 & 1u;
  const uint32_t normal = (bits - (uint32_t{127 - 15} << 23) + 0xFFFu + odd) >> 13;
  // The last bit of a float in [0.5, 1) is 2^-24, which is also the last bit of a subnormal f16.
  // Adding 0.5 therefore rounds `value` as a conversion to a subnormal f16 does.
  const float shifted = std::bit_cast<float>(select_bits(bits < 0x38800000u, bits, 0)) + 0.5f;
  const uint32_t tiny = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f);
  uint32_t half = select_bits(bits < 0x38800000u, tiny, normal);
  half = select_bits(bits >= 0x47800000u, 0x7C00u, half);
  half = select_bits(bits > 0x7F800000u, 0x7E00u, half);
  return static_cast<uint16_t>(half | (given >> 16 & 0x8000u));
}

constexpr float bf16_to_f32(uint16_t half) { return std::bit_cast<float>(uint32_t{half} << 16); }

constexpr uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
  const uint32_t quiet = bits >> 16 | 0x40u;
  return static_cast<uint16_t>(select_bits((bits & 0x7FFFFFFFu) > 0x7F800000u, quiet, rounded));
}

// Converts f64 to f32, rounded to odd. Rounding the result to f16 or bf16 equals rounding `value`
// once.
inline float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (back == value || value != value) return nearest;
  if (std::fabs(back) > std::fabs(value)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

struct f16 {
  uint16_t bits;
  static constexpr f16 from(float value) { return {f32_to_f16(value)}; }
  static f16 from(double value) { return {f32_to_f16(round_to_odd(value))}; }
  constexpr operator float() const { return f16_to_f32(bits); }
};

struct bf16 {
  uint16_t bits;
  static constexpr bf16 from(float value) { return {f32_to_bf16(value)}; }
  static bf16 from(double value) { return {f32_to_bf16(round_to_odd(value))}; }
  constexpr operator float() const { return bf16_to_f32(bits); }
};

}  // namespace backplane::kit
