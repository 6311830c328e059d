// SPDX-License-Identifier: Apache-2.0
// out = x in another dtype. Conversions of f64, and conversions that round, use integer operations.
// Devices therefore need no `double`, and do not flush subnormals.
#include "nest.h"

SIMT_FN i32 top_bit(u64 x) {  // x must not be 0
  const u32 high = (u32)(x >> 32);
  return high != 0u ? 63 - (i32)leading_zeros(high) : 31 - (i32)leading_zeros((u32)x);
}

// Returns x >> shift, rounded to nearest even. `shift` is at least 1.
SIMT_FN u64 shift_rounded(u64 x, i32 shift) {
  if (shift > 63) return 0;
  const u64 one = 1, kept = x >> shift, remainder = x & ((one << shift) - one), half_ulp = one << (shift - 1);
  return kept + (u64)(remainder > half_ulp || (remainder == half_ulp && (kept & one) == one));
}

// Returns the bits of the f32 that is nearest to an integer, with ties to even.
SIMT_FN u32 f32_of_magnitude(u64 magnitude) {
  if (magnitude == 0) return 0u;
  const i32 top = top_bit(magnitude);
  const u32 exponent = (u32)(top + 126) << 23;
  // A carry out of the mantissa correctly increments the exponent.
  return exponent + (top <= 23 ? (u32)(magnitude << (23 - top)) : (u32)shift_rounded(magnitude, top - 23));
}
SIMT_FN u64 f64_of_magnitude(u64 magnitude, bool negative) {
  if (magnitude == 0) return 0;
  const i32 top = top_bit(magnitude);
  const u64 significand = top <= 52 ? magnitude << (52 - top) : shift_rounded(magnitude, top - 52);
  return ((u64)negative << 63) | (((u64)(top + 1022) << 52) + significand);
}
// Returns a number that f32 represents exactly, and that rounds to the same 16-bit float as
// `magnitude`. The lowest bit that f32 keeps is a sticky bit, which is 1 if any dropped bit is 1.
SIMT_FN u64 sticky(u64 magnitude) {
  const i32 top = magnitude == 0 ? 0 : top_bit(magnitude);
  if (top <= 22) return magnitude;
  const i32 shift = top - 22;
  const u64 one = 1, remainder = magnitude & ((one << shift) - one);
  return (magnitude >> shift | (u64)(remainder != 0)) << shift;
}

SIMT_FN u64 f64_of_f32(u32 bits) {
  const u64 sign = (u64)(bits >> 31) << 63;
  const u32 exponent = bits >> 23 & 0xFFu, mantissa = bits & 0x7FFFFFu;
  if (exponent == 0xFFu) return sign | 0x7FF0000000000000ul | (u64)mantissa << 29;
  if (exponent != 0u) return sign | (u64)(exponent + 896u) << 52 | (u64)mantissa << 29;
  if (mantissa == 0u) return sign;
  const i32 top = 31 - (i32)leading_zeros(mantissa);
  return sign | (u64)(top + 874) << 52 | ((u64)mantissa << (52 - top) & 0xFFFFFFFFFFFFFul);
}

SIMT_FN i64 clamped(i64 x, i64 low, i64 high) { return x < low ? low : x > high ? high : x; }
// Returns mantissa * 2^(exponent - point), truncated and clamped.
SIMT_FN i64 integer_of(u64 mantissa, i32 exponent, i32 point, bool negative, i64 low, i64 high) {
  if (exponent >= 63) return negative ? low : high;
  if (exponent < 0) return 0;
  const u64 magnitude = exponent >= point ? mantissa << (exponent - point) : mantissa >> (point - exponent);
  return clamped(negative ? -(i64)magnitude : (i64)magnitude, low, high);
}
SIMT_FN i64 integer_of_f32(u32 bits, i64 low, i64 high) {
  if (is_nan_bits(bits)) return 0;
  const u64 mantissa = (bits & 0x7FFFFFu) | 0x800000u;
  return integer_of(mantissa, (i32)(bits >> 23 & 0xFFu) - 127, 23, bits >> 31 != 0u, low, high);
}
SIMT_FN bool is_nan_f64(u64 bits) { return (bits & 0x7FFFFFFFFFFFFFFFul) > 0x7FF0000000000000ul; }
SIMT_FN i64 integer_of_f64(u64 bits, i64 low, i64 high) {
  if (is_nan_f64(bits)) return 0;
  const u64 significand = (bits & 0xFFFFFFFFFFFFFul) | 0x10000000000000ul;
  return integer_of(significand, (i32)((u32)(bits >> 52) & 0x7FFu) - 1023, 52, bits >> 63 != 0, low, high);
}

// Converts f64 to a narrower float with one rounding. The result has `kept_bits` explicit
// significand bits, the minimum normal exponent `least`, and the exponent bias `bias`.
SIMT_FN u32 narrow(u64 bits, i32 kept_bits, i32 least, i32 bias) {
  const u32 infinity = (u32)(2 * bias + 1) << kept_bits;
  const u32 sign = (u32)(bits >> 63) * (infinity + (1u << kept_bits));
  if (is_nan_f64(bits)) return infinity | 1u << (kept_bits - 1);
  const i32 exponent = (i32)((u32)(bits >> 52) & 0x7FFu) - 1023;
  if (exponent > bias) return sign | infinity;
  if (exponent < least - kept_bits - 1) return sign;
  const u64 significand = (bits & 0xFFFFFFFFFFFFFul) | 0x10000000000000ul;
  const i32 below = least > exponent ? least - exponent : 0;  // a subnormal result keeps fewer bits
  const u32 kept = (u32)shift_rounded(significand, 52 - kept_bits + below);
  return sign | (below > 0 ? kept : ((u32)(exponent + bias - 1) << kept_bits) + kept);
}

// The least and the greatest value of an integer dtype.
template <class To>
SIMT_FN i64 least() {
  return To::kKind != SIMT_SIGNED ? 0 : (i64)(~0ul << (To::kBits - 1));
}
template <class To>
SIMT_FN i64 greatest() {
  return To::kKind == SIMT_SIGNED ? (i64) ~(~0ul << (To::kBits - 1)) : (i64) ~(~0ul << (To::kBits % 64));
}

// Conversions from f32, f64 and integers to To.
template <class To>
struct Convert {
  SIMT_FN static typename To::Bits of_f32(u32 bits) {
    return (typename To::Bits)integer_of_f32(bits, least<To>(), greatest<To>());
  }
  SIMT_FN static typename To::Bits of_f64(u64 bits) {
    return (typename To::Bits)integer_of_f64(bits, least<To>(), greatest<To>());
  }
  SIMT_FN static typename To::Bits of_whole(i64 value) { return (typename To::Bits)value; }
};
template <>
struct Convert<BOOL> {
  SIMT_FN static u8 of_f32(u32 bits) { return (bits & 0x7FFFFFFFu) != 0u; }
  SIMT_FN static u8 of_f64(u64 bits) { return (bits & 0x7FFFFFFFFFFFFFFFul) != 0; }
  SIMT_FN static u8 of_whole(i64 value) { return value != 0; }
};
SIMT_FN u64 magnitude_of(i64 value) { return value < 0 ? (u64)0 - (u64)value : (u64)value; }
SIMT_FN u32 sign_of(i64 value) { return value < 0 ? 0x80000000u : 0u; }
template <>
struct Convert<F32> {
  SIMT_FN static u32 of_f32(u32 bits) { return bits; }
  SIMT_FN static u32 of_f64(u64 bits) { return narrow(bits, 23, -126, 127); }
  SIMT_FN static u32 of_whole(i64 value) { return sign_of(value) | f32_of_magnitude(magnitude_of(value)); }
};
template <>
struct Convert<F16> {
  SIMT_FN static u16 of_f32(u32 bits) { return F16::of_f32(bits); }
  SIMT_FN static u16 of_f64(u64 bits) { return (u16)narrow(bits, 10, -14, 15); }
  SIMT_FN static u16 of_whole(i64 value) {
    return F16::of_f32(sign_of(value) | f32_of_magnitude(sticky(magnitude_of(value))));
  }
};
template <>
struct Convert<BF16> {
  SIMT_FN static u16 of_f32(u32 bits) { return BF16::of_f32(bits); }
  SIMT_FN static u16 of_f64(u64 bits) { return (u16)narrow(bits, 7, -126, 127); }
  SIMT_FN static u16 of_whole(i64 value) {
    return BF16::of_f32(sign_of(value) | f32_of_magnitude(sticky(magnitude_of(value))));
  }
};
template <>
struct Convert<F64> {
  SIMT_FN static u64 of_f32(u32 bits) { return f64_of_f32(bits); }
  SIMT_FN static u64 of_f64(u64 bits) { return bits; }
  SIMT_FN static u64 of_whole(i64 value) { return f64_of_magnitude(magnitude_of(value), value < 0); }
};

template <class To>
struct Cast {
  typedef typename To::Bits Out;
  typedef SIMT_T::Bits In;
  SIMT_FN static Out apply(In x, u32) {
#if SIMT_IS_F64
    return Convert<To>::of_f64(x);
#elif SIMT_IS_FLOAT
    return Convert<To>::of_f32(SIMT_T::f32(x));
#else
    return Convert<To>::of_whole((i64)SIMT_T::value(x));
#endif
  }
};

SIMT_MAP1(cast_bool, Cast<BOOL>)
SIMT_MAP1(cast_u8, Cast<U8>)
SIMT_MAP1(cast_i8, Cast<I8>)
SIMT_MAP1(cast_i32, Cast<I32>)
SIMT_MAP1(cast_u32, Cast<U32>)
SIMT_MAP1(cast_i64, Cast<I64>)
SIMT_MAP1(cast_f16, Cast<F16>)
SIMT_MAP1(cast_bf16, Cast<BF16>)
SIMT_MAP1(cast_f32, Cast<F32>)
SIMT_MAP1(cast_f64, Cast<F64>)
