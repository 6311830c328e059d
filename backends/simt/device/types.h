// SPDX-License-Identifier: Apache-2.0
// The dtypes. `Bits` is the type of an element in memory. `Value` is the type for arithmetic, which is float for f16
// and bf16. `Order` is an integer with the order of the numbers: -0 equals +0, and NaN is the maximum.
//
// The conversions of f16 and bf16 in this file use integer operations, and float products that are never subnormal. So
// devices that flush subnormals to 0 give the same results as other devices. cuda and hip use instructions for f16
// instead, and cuda also uses them for bf16 on GPUs that have them. These instructions do not flush subnormals.
#pragma once
#include "simt.h"

#include "params.h"

SIMT_FN bool is_nan_bits(u32 bits) { return (bits & 0x7FFFFFFFu) > 0x7F800000u; }
#ifndef SIMT_NATIVE_F16
SIMT_FN u32 f32_of_f16(u32 bits) {
  const u32 exponent = bits & 0x7C00u;
  const u32 normal = ((bits & 0x7FFFu) << 13) + 0x38000000u + (exponent == 0x7C00u ? 0x38000000u : 0u);
  // The product with 2^-24 is exact and not subnormal.
  const u32 small = bits_of_float((float)(bits & 0x3FFu) * 5.9604644775390625e-08f);
  return (bits & 0x8000u) << 16 | (exponent == 0u ? small : normal);
}
// Rounds to nearest even.
SIMT_FN u32 f16_of_f32(u32 bits) {
  const u32 magnitude = bits & 0x7FFFFFFFu;
  const u32 normal = (magnitude - 0x38000000u + 0xFFFu + (magnitude >> 13 & 1u)) >> 13;
  // `shift` is the number of bits that a subnormal result drops.
  const u32 exponent = smaller(magnitude >> 23, 126u);
  const u32 shift = exponent > 125u ? 1u : smaller(126u - exponent, 31u);
  const u32 full = (magnitude & 0x7FFFFFu) | 0x800000u;
  const u32 kept = full >> shift, remainder = full & ((1u << shift) - 1u), half_ulp = 1u << (shift - 1u);
  const u32 small = kept + (u32)(remainder + (kept & 1u) > half_ulp);
  const u32 finite = magnitude >= 0x38800000u ? normal : small;
  const u32 large = magnitude > 0x7F800000u ? 0x7E00u : 0x7C00u;
  // Magnitudes from 65520 on round to infinity.
  return (bits >> 16 & 0x8000u) | (magnitude >= 0x477FF000u ? large : finite);
}
#endif
#ifndef SIMT_NATIVE_BF16
SIMT_FN u32 bf16_of_f32(u32 bits) {
  const u32 rounded = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16, quiet = bits >> 16 | 0x40u;
  return is_nan_bits(bits) ? quiet : rounded;
}
#endif
SIMT_FN i32 order_of_f32(u32 bits) {
  if (is_nan_bits(bits)) return 0x7FFFFFFF;
  if (bits == 0x80000000u) bits = 0u;
  return (i32)bits ^ (i32)((u32)((i32)bits >> 31) >> 1);
}

// Values of kKind, the kind of a dtype.
#define SIMT_FLOAT 0
#define SIMT_SIGNED 1
#define SIMT_UNSIGNED 2
#define SIMT_BOOL 3

struct F32 {
  typedef u32 Bits;
  typedef float Value;
  typedef i32 Order;
  enum { kKind = SIMT_FLOAT, kBits = 32 };
  SIMT_FN static u32 f32(Bits bits) { return bits; }
  SIMT_FN static Bits of_f32(u32 bits) { return bits; }
  SIMT_FN static Value value(Bits bits) { return float_of_bits(bits); }
  SIMT_FN static Bits bits(Value value) { return bits_of_float(value); }
  SIMT_FN static Order order(Bits bits) { return order_of_f32(bits); }
  SIMT_FN static bool is_nan(Bits bits) { return is_nan_bits(bits); }
};
struct F16 {
  typedef u16 Bits;
  typedef float Value;
  typedef i32 Order;
  enum { kKind = SIMT_FLOAT, kBits = 16 };
  SIMT_FN static u32 f32(Bits bits) { return f32_of_f16(bits); }
  SIMT_FN static Bits of_f32(u32 bits) { return (Bits)f16_of_f32(bits); }
  SIMT_FN static Value value(Bits bits) { return float_of_bits(f32(bits)); }
  SIMT_FN static Bits bits(Value value) { return of_f32(bits_of_float(value)); }
  SIMT_FN static Order order(Bits bits) { return order_of_f32(f32(bits)); }
  SIMT_FN static bool is_nan(Bits bits) { return is_nan_bits(f32(bits)); }
};
struct BF16 {
  typedef u16 Bits;
  typedef float Value;
  typedef i32 Order;
  enum { kKind = SIMT_FLOAT, kBits = 16 };
  SIMT_FN static u32 f32(Bits bits) { return (u32)bits << 16; }
  SIMT_FN static Bits of_f32(u32 bits) { return (Bits)bf16_of_f32(bits); }
  SIMT_FN static Value value(Bits bits) { return float_of_bits(f32(bits)); }
  SIMT_FN static Bits bits(Value value) { return of_f32(bits_of_float(value)); }
  SIMT_FN static Order order(Bits bits) { return order_of_f32(f32(bits)); }
  SIMT_FN static bool is_nan(Bits bits) { return is_nan_bits(f32(bits)); }
};

// The integers, and BOOL. Bits is unsigned, so that arithmetic on Bits wraps.
template <class B, class V, int kind, int size>
struct Whole {
  typedef B Bits;
  typedef V Value;
  typedef V Order;
  enum { kKind = kind, kBits = size };
  SIMT_FN static Value value(Bits bits) { return (Value)bits; }
  SIMT_FN static Bits bits(Value value) { return (Bits)value; }
  SIMT_FN static Order order(Bits bits) { return (Value)bits; }
  SIMT_FN static bool is_nan(Bits) { return false; }
};
struct I8 : Whole<u8, i32, SIMT_SIGNED, 8> {
  SIMT_FN static Value value(Bits bits) { return (i32)((u32)bits << 24) >> 24; }
  SIMT_FN static Order order(Bits bits) { return value(bits); }
};
struct U8 : Whole<u8, u32, SIMT_UNSIGNED, 8> {};
struct I32 : Whole<u32, i32, SIMT_SIGNED, 32> {};
struct U32 : Whole<u32, u32, SIMT_UNSIGNED, 32> {};
struct I64 : Whole<u64, i64, SIMT_SIGNED, 64> {};
struct BOOL : Whole<u8, u32, SIMT_BOOL, 8> {
  SIMT_FN static Value value(Bits bits) { return (Value)(bits != 0); }
  SIMT_FN static Order order(Bits bits) { return value(bits); }
};
// Kernels move and cast f64, but do not compute with it.
struct F64 {
  typedef u64 Bits;
  enum { kKind = SIMT_FLOAT, kBits = 64 };
};
