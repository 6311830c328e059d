// SPDX-License-Identifier: Apache-2.0
// Converts host numbers to a dtype. Float to float rounds once, to nearest even. Float to integer
// truncates and saturates, and NaN gives 0. Integer to integer wraps. A conversion to bool tests
// whether the number is not 0.
#include "base/scalar.hpp"

#include <backplane/tensor.h>

#include <bit>
#include <cmath>
#include <limits>

namespace backplane::core {

namespace {

// Rounds a double once, to nearest even, to a format with `mantissa` stored mantissa bits and
// `exponent_bits` exponent bits. Returns the bits. A conversion from f64 to f32 to f16 would round
// twice.
uint64_t narrow(double value, int mantissa, int exponent_bits) noexcept {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint64_t sign = bits >> 63 << (mantissa + exponent_bits);
  const uint64_t infinity = ((uint64_t{1} << exponent_bits) - 1) << mantissa;
  if (std::isnan(value)) return sign | infinity | uint64_t{1} << (mantissa - 1);
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return sign | infinity;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  int exponent = 0;
  // After frexp, magnitude = f * 2^exponent with f in [0.5, 1).
  (void)std::frexp(magnitude, &exponent);
  // The last stored bit has the weight 2^unit.
  const int unit = std::max(exponent - 1, 1 - bias) - mantissa;
  // Scaling by a power of two is exact, so only nearbyint rounds.
  const double scaled = std::nearbyint(std::ldexp(magnitude, -unit));
  const double rounded = std::ldexp(scaled, unit);
  if (rounded == 0) return sign;
  (void)std::frexp(rounded, &exponent);
  if (exponent - 1 > bias) return sign | infinity;
  // For a subnormal result, `scaled` is the mantissa.
  if (exponent - 1 < 1 - bias) return sign | static_cast<uint64_t>(scaled);
  const double fraction = std::ldexp(rounded, 1 - exponent) - 1.0;
  return sign | static_cast<uint64_t>(exponent - 1 + bias) << mantissa |
         static_cast<uint64_t>(std::ldexp(fraction, mantissa));
}

template <class T>
uint64_t saturate(double value) noexcept {
  if (std::isnan(value)) return 0;
  const double low = static_cast<double>(std::numeric_limits<T>::min());
  // `above` is exact for every T, because max + 1 is a power of two.
  const double above = std::ldexp(1.0, std::numeric_limits<T>::digits);
  const double whole = std::trunc(value);
  T result = whole < low      ? std::numeric_limits<T>::min()
             : whole >= above ? std::numeric_limits<T>::max()
                              : static_cast<T>(whole);
  return static_cast<uint64_t>(static_cast<std::make_unsigned_t<T>>(result));
}

}  // namespace

uint64_t scalar_bits(uint32_t dtype, double value) noexcept {
  switch (dtype) {
    case BP_BOOL:
      return value != 0 ? 1 : 0;  // a NaN gives 1
    case BP_U8:
      return saturate<uint8_t>(value);
    case BP_I8:
      return saturate<int8_t>(value);
    case BP_I32:
      return saturate<int32_t>(value);
    case BP_U32:
      return saturate<uint32_t>(value);
    case BP_I64:
      return saturate<int64_t>(value);
    case BP_F16:
      return narrow(value, 10, 5);
    case BP_BF16:
      return narrow(value, 7, 8);
    case BP_F32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case BP_F64:
      return std::bit_cast<uint64_t>(value);
    default:
      return 0;
  }
}

uint64_t scalar_bits(uint32_t dtype, int64_t value) noexcept {
  const auto bits = static_cast<uint64_t>(value);
  switch (dtype) {
    case BP_BOOL:
      return value != 0 ? 1 : 0;
    case BP_U8:
    case BP_I8:
      return bits & 0xFFu;
    case BP_I32:
    case BP_U32:
      return bits & 0xFFFFFFFFu;
    case BP_I64:
      return bits;
    case BP_F32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case BP_F64:
      return std::bit_cast<uint64_t>(static_cast<double>(value));
    case BP_F16:
    case BP_BF16: {
      // Rounds the integer to f64 with rounding to odd, so that the second rounding, from f64, gives the correct
      // result. Rounding to odd suffices because f64 has at least two more mantissa bits than f16 and bf16.
      double wide = static_cast<double>(value);
      if (std::fabs(wide) < 9.2e18 && static_cast<int64_t>(wide) != value && (std::bit_cast<uint64_t>(wide) & 1) == 0) {
        const bool above = static_cast<int64_t>(wide) > value;
        wide = std::nextafter(wide, above ? -INFINITY : INFINITY);
      }
      return scalar_bits(dtype, wide);
    }
    default:
      return 0;
  }
}

}  // namespace backplane::core
