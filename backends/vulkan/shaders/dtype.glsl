// SPDX-License-Identifier: Apache-2.0
// Loads, stores and conversions of elements of dtype T, which is one of the build's macros T_*.
// BITS is the type of an element in memory, and VALUE is the type for arithmetic. f64 has no VALUE,
// because casts do not use the device's f64. f16 and bf16 are computed as f32. Integer arithmetic
// converts f16 and bf16, so that no device flushes subnormals or truncates.
#define IS_FLOAT (T == T_F16 || T == T_BF16 || T == T_F32)

// ---- conversions between f32 and f16 or bf16, as bits -------------------------------------------
// The conversions compute every case and select one, because branches in inner loops cost more and
// take seconds to compile.
uint f32_of_f16(uint bits) {
  const uint exponent = bits & 0x7C00u;
  const uint normal = ((bits & 0x7FFFu) << 13) + 0x38000000u + (exponent == 0x7C00u ? 0x38000000u : 0u);
  // The product with 2^-24 is exact and not subnormal.
  const uint small = floatBitsToUint(float(bits & 0x3FFu) * 5.9604645e-08);
  return (bits & 0x8000u) << 16 | (exponent == 0u ? small : normal);
}
// Rounds to nearest even.
uint f16_of_f32(uint bits) {
  const uint magnitude = bits & 0x7FFFFFFFu;
  const uint normal = (magnitude - 0x38000000u + 0xFFFu + (magnitude >> 13 & 1u)) >> 13;
  const uint shift =
      clamp(126u - min(magnitude >> 23, 126u), 1u, 31u);  // number of bits that a subnormal result drops
  const uint full = (magnitude & 0x7FFFFFu) | 0x800000u;
  const uint kept = full >> shift, remainder = full & ((1u << shift) - 1u), half_ulp = 1u << (shift - 1u);
  const uint small = kept + uint(remainder + (kept & 1u) > half_ulp);
  const uint finite = magnitude >= 0x38800000u ? normal : small;
  const uint large = magnitude > 0x7F800000u ? 0x7E00u : 0x7C00u;
  // Magnitudes from 65520 on round to infinity.
  return (bits >> 16 & 0x8000u) | (magnitude >= 0x477FF000u ? large : finite);
}
uint bf16_of_f32(uint bits) {
  const uint rounded = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16, quiet = bits >> 16 | 0x40u;
  return (bits & 0x7FFFFFFFu) > 0x7F800000u ? quiet : rounded;
}

bool nan_bits(uint f32_bits) { return (f32_bits & 0x7FFFFFFFu) > 0x7F800000u; }
// Returns an integer that compares like the number. -0 and +0 are equal, and every NaN is the
// maximum.
int order_f32(uint bits) {
  if (nan_bits(bits)) return 0x7FFFFFFF;
  if (bits == 0x80000000u) bits = 0u;
  return int(bits) ^ int(uint(int(bits) >> 31) >> 1);
}

// ---- the types of dtype T, and its loads and stores ---------------------------------------------
#if T == T_BOOL || T == T_U8 || T == T_I8
#define BYTES 1
#define BITS uint
#define BITS4 uvec4
#define load_bits load8
#define store_bits store8
#define load_vec4 load_vec4_8
#define store_vec4 store_vec4_8
#elif T == T_F16 || T == T_BF16
#define BYTES 2
#define BITS uint
#define BITS4 uvec4
#define load_bits load16
#define store_bits store16
#define load_vec4 load_vec4_16
#define store_vec4 store_vec4_16
#elif T == T_I64 || T == T_F64
#define BYTES 8
#define BITS uint64_t
#define BITS4 u64vec4
#define load_bits load64
#define store_bits store64
#define load_vec4 load_vec4_64
#define store_vec4 store_vec4_64
#else
#define BYTES 4
#define BITS uint
#define BITS4 uvec4
#define load_bits load32
#define store_bits store32
#define load_vec4 load_vec4_32
#define store_vec4 store_vec4_32
#endif

#if IS_FLOAT
#define VALUE float
#define ORDER int
#if T == T_F16
uint f32_bits(uint bits) { return f32_of_f16(bits); }
uint bits_of_f32(uint bits) { return f16_of_f32(bits); }
#elif T == T_BF16
uint f32_bits(uint bits) { return bits << 16; }
uint bits_of_f32(uint bits) { return bf16_of_f32(bits); }
#else
uint f32_bits(uint bits) { return bits; }
uint bits_of_f32(uint bits) { return bits; }
#endif
float value_of(uint bits) { return uintBitsToFloat(f32_bits(bits)); }
uint bits_of(float value) { return bits_of_f32(floatBitsToUint(value)); }
bool is_nan(uint bits) { return nan_bits(f32_bits(bits)); }
int order_of(uint bits) { return order_f32(f32_bits(bits)); }
#define SIGN_BIT (1u << (BYTES * 8 - 1))

#elif T == T_F64
#elif T == T_I64
#define VALUE int64_t
#define ORDER int64_t
int64_t value_of(uint64_t bits) { return int64_t(bits); }
uint64_t bits_of(int64_t value) { return uint64_t(value); }
int64_t order_of(uint64_t bits) { return int64_t(bits); }
#elif T == T_I8 || T == T_I32
#define VALUE int
#define ORDER int
#if T == T_I8
int value_of(uint bits) { return int(bits << 24) >> 24; }
#else
int value_of(uint bits) { return int(bits); }
#endif
uint bits_of(int value) { return uint(value); }
int order_of(uint bits) { return value_of(bits); }
#else
#define VALUE uint
#define ORDER uint
#if T == T_BOOL
uint value_of(uint bits) { return uint(bits != 0u); }
#else
uint value_of(uint bits) { return bits; }
#endif
uint bits_of(uint value) { return value; }
uint order_of(uint bits) { return value_of(bits); }
#endif
