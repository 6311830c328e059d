// SPDX-License-Identifier: Apache-2.0
// Numbers of every dtype for the tests' oracles: conversion of bits to exact values and back. The
// conversion uses arithmetic, not bit manipulation, so that it shares nothing with the tested code.
#pragma once

#include <backplane/ops.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace backplane::reference::test {

using Real = long double;  // represents every f64 and every i64 exactly

inline const std::vector<uint32_t> kAll = {BP_BOOL, BP_U8,  BP_I8,   BP_I32, BP_U32,
                                           BP_I64,  BP_F16, BP_BF16, BP_F32, BP_F64};
inline const std::vector<uint32_t> kInts = {BP_U8, BP_I8, BP_I32, BP_U32, BP_I64};
inline const std::vector<uint32_t> kFloats = {BP_F16, BP_BF16, BP_F32, BP_F64};
inline const std::vector<uint32_t> kNumeric = {BP_U8, BP_I8, BP_I32, BP_U32, BP_I64, BP_F16, BP_BF16, BP_F32, BP_F64};
inline const std::vector<uint32_t> kBits = {BP_BOOL, BP_U8, BP_I8, BP_I32, BP_U32, BP_I64};

// The format of a float: the number of mantissa bits without the implicit bit, the exponents of the
// smallest and the largest normal number, and the width in bits.
struct Format {
  int mantissa, least, greatest, width;
};
inline Format format_of(uint32_t dtype) {
  switch (dtype) {
    case BP_F16:
      return {10, -14, 15, 16};
    case BP_BF16:
      return {7, -126, 127, 16};
    case BP_F32:
      return {23, -126, 127, 32};
    default:
      return {52, -1022, 1023, 64};
  }
}
inline bool is_float(uint32_t dtype) { return dtype >= BP_F16 && dtype <= BP_F64; }
inline bool is_signed(uint32_t dtype) { return dtype == BP_I8 || dtype == BP_I32 || dtype == BP_I64; }
inline uint32_t bytes_of(uint32_t dtype) {
  switch (dtype) {
    case BP_BOOL:
    case BP_U8:
    case BP_I8:
      return 1;
    case BP_F16:
    case BP_BF16:
      return 2;
    case BP_I64:
    case BP_F64:
      return 8;
    default:
      return 4;
  }
}
inline int width_of(uint32_t dtype) { return static_cast<int>(bytes_of(dtype)) * 8; }
inline uint64_t mask_of(uint32_t dtype) {
  return width_of(dtype) == 64 ? ~uint64_t{0} : (uint64_t{1} << width_of(dtype)) - 1;
}

inline Real decode(uint32_t dtype, uint64_t bits) {
  if (!is_float(dtype)) {
    const int width = width_of(dtype);
    if (is_signed(dtype) && (bits >> (width - 1) & 1) != 0)
      return static_cast<Real>(static_cast<int64_t>(bits | ~mask_of(dtype)));
    return static_cast<Real>(bits);
  }
  const Format f = format_of(dtype);
  const uint64_t mantissa = bits & ((uint64_t{1} << f.mantissa) - 1);
  const int exponent = static_cast<int>(bits >> f.mantissa & ((uint64_t{1} << (f.width - 1 - f.mantissa)) - 1));
  const Real sign = (bits >> (f.width - 1) & 1) != 0 ? -1 : 1;
  const int special = f.greatest - f.least + 2;
  if (exponent == special)
    return mantissa != 0 ? std::numeric_limits<Real>::quiet_NaN() : sign * std::numeric_limits<Real>::infinity();
  if (exponent == 0) return sign * std::ldexp(static_cast<Real>(mantissa), f.least - f.mantissa);
  return sign * std::ldexp(1 + std::ldexp(static_cast<Real>(mantissa), -f.mantissa), exponent - 1 + f.least);
}

// The distance between adjacent numbers at x.
inline Real ulp_of(uint32_t dtype, Real x) {
  const Format f = format_of(dtype);
  const int exponent = x == 0 || !std::isfinite(x) ? f.least : std::max(std::ilogb(x), f.least);
  return std::ldexp(Real{1}, exponent - f.mantissa);
}
inline Real greatest_of(uint32_t dtype) {
  if (is_float(dtype)) {
    const Format f = format_of(dtype);
    return std::ldexp(2 - std::ldexp(Real{1}, -f.mantissa), f.greatest);
  }
  return static_cast<Real>(mask_of(dtype) >> (is_signed(dtype) ? 1 : 0));
}
inline Real least_of(uint32_t dtype) {
  return is_float(dtype) ? -greatest_of(dtype) : is_signed(dtype) ? -greatest_of(dtype) - 1 : 0;
}

// Converts x to bits. Floats are rounded once, to nearest even. For integers, x must be integral,
// and the result wraps.
inline uint64_t encode(uint32_t dtype, Real x) {
  if (!is_float(dtype)) {
    const Real span = std::ldexp(Real{1}, 64);
    Real wrapped = std::fmod(x, span);
    if (wrapped < 0) wrapped += span;
    return static_cast<uint64_t>(wrapped) & mask_of(dtype);
  }
  const Format f = format_of(dtype);
  const uint64_t sign = std::signbit(x) ? uint64_t{1} << (f.width - 1) : 0;
  const uint64_t infinity = ((uint64_t{1} << (f.width - 1 - f.mantissa)) - 1) << f.mantissa;
  if (std::isnan(x)) return infinity | uint64_t{1} << (f.mantissa - 1);
  const Real size = std::fabs(x);
  if (std::isinf(size)) return sign | infinity;
  const Real step = ulp_of(dtype, size);
  const Real rounded = std::nearbyint(size / step) * step;
  if (rounded > greatest_of(dtype)) return sign | infinity;
  if (rounded == 0) return sign;
  const int exponent = std::max(std::ilogb(rounded), f.least);
  const auto units = static_cast<uint64_t>(std::ldexp(rounded, f.mantissa - exponent));
  const uint64_t hidden = uint64_t{1} << f.mantissa;
  if (units < hidden) return sign | units;
  return sign | static_cast<uint64_t>(exponent - f.least + 1) << f.mantissa | (units - hidden);
}

inline uint64_t nan_bits(uint32_t dtype) { return encode(dtype, std::numeric_limits<Real>::quiet_NaN()); }
inline bool is_nan(uint32_t dtype, uint64_t bits) { return is_float(dtype) && std::isnan(decode(dtype, bits)); }

// Special values: zeros, ones, extremes, infinities, NaN, subnormals, and some ordinary values.
inline std::vector<uint64_t> corners(uint32_t dtype) {
  if (dtype == BP_BOOL) return {0, 1};
  std::vector<uint64_t> out;
  if (!is_float(dtype)) {
    for (const Real x : {Real{0}, Real{1}, Real{2}, Real{3}, Real{7}, Real{8}, Real{31}, Real{33}, Real{100}, Real{-1},
                         Real{-2}, Real{-7}})
      out.push_back(encode(dtype, x));
    for (const Real x : {greatest_of(dtype), greatest_of(dtype) - 1, least_of(dtype), least_of(dtype) + 1})
      out.push_back(encode(dtype, x));
    return out;
  }
  const Format f = format_of(dtype);
  const Real tiny = std::ldexp(Real{1}, f.least - f.mantissa), normal = std::ldexp(Real{1}, f.least);
  const Real inf = std::numeric_limits<Real>::infinity();
  for (const Real x : {Real{0}, Real{1}, Real{0.5}, Real{1.5}, Real{2.5}, Real{3}, Real{0.1L}, Real{100.25L},
                       Real{2049}, tiny, 3 * tiny, normal, normal - tiny, greatest_of(dtype), inf}) {
    out.push_back(encode(dtype, x));
    out.push_back(encode(dtype, -x));
  }
  out.push_back(nan_bits(dtype));
  return out;
}

}  // namespace backplane::reference::test
