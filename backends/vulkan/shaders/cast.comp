// SPDX-License-Identifier: Apache-2.0
// out = x converted to dtype OP. Uses integer arithmetic where hardware may flush subnormals or
// truncate, or where a conversion is undefined.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "dtype.glsl"
#include "vec4_loop.glsl"

#define OUT_BYTES (OP == T_I64 || OP == T_F64 ? 8u : OP == T_I32 || OP == T_U32 || OP == T_F32 ? 4u : OP == T_F16 || OP == T_BF16 ? 2u : 1u)

// Returns the bits of the f32 that is nearest to an integer, with ties to even. Does not rely on
// the hardware's rounding.
uint f32_of_magnitude(uint64_t magnitude) {
  if (magnitude == uint64_t(0)) return 0u;
  const uint high = uint(magnitude >> 32);
  const int top = high != 0u ? findMSB(high) + 32 : findMSB(uint(magnitude));
  uint exponent = uint(top + 127);
  if (top <= 23) return (exponent << 23) + (uint(magnitude) << (23 - top)) - 0x800000u;
  const int shift = top - 23;
  const uint kept = uint(magnitude >> shift);
  const uint64_t remainder = magnitude & ((uint64_t(1) << shift) - uint64_t(1)), half_ulp = uint64_t(1) << (shift - 1);
  const uint up = uint(remainder > half_ulp || (remainder == half_ulp && (kept & 1u) == 1u));
  return (exponent << 23) + kept - 0x800000u + up;  // a carry correctly increments the exponent
}

#if IS_FLOAT
// Converts f32 bits to an integer, truncated and clamped to [low, high]. Returns 0 for NaN.
int64_t integer_of(uint bits, int64_t low, int64_t high) {
  if (nan_bits(bits)) return 0l;
  const int exponent = int(bits >> 23 & 0xFFu) - 127;
  const bool negative = bits >> 31 != 0u;
  if (exponent >= 63) return negative ? low : high;
  if (exponent < 0) return 0l;
  const uint64_t mantissa = uint64_t((bits & 0x7FFFFFu) | 0x800000u);
  const uint64_t magnitude = exponent >= 23 ? mantissa << (exponent - 23) : mantissa >> (23 - exponent);
  const int64_t value = negative ? -int64_t(magnitude) : int64_t(magnitude);
  return clamp(value, low, high);
}
#endif

int top_bit(uint64_t x) {  // x must not be 0
  const uint high = uint(x >> 32);
  return high != 0u ? findMSB(high) + 32 : findMSB(uint(x));
}

// Returns x >> shift, rounded to nearest even. `shift` is at least 1.
uint64_t shift_rounded(uint64_t x, int shift) {
  if (shift > 63) return uint64_t(0);
  const uint64_t kept = x >> shift, remainder = x & ((uint64_t(1) << shift) - uint64_t(1)),
                 half_ulp = uint64_t(1) << (shift - 1);
  return kept + uint64_t(remainder > half_ulp || (remainder == half_ulp && (kept & uint64_t(1)) == uint64_t(1)));
}

// Converts f32 bits to f64 bits. The conversion is exact.
uint64_t f64_of_f32(uint bits) {
  const uint64_t sign = uint64_t(bits >> 31) << 63;
  const uint exponent = bits >> 23 & 0xFFu, mantissa = bits & 0x7FFFFFu;
  if (exponent == 0xFFu) return sign | 0x7FF0000000000000ul | uint64_t(mantissa) << 29;
  if (exponent != 0u) return sign | uint64_t(exponent + 896u) << 52 | uint64_t(mantissa) << 29;
  if (mantissa == 0u) return sign;
  const int top = findMSB(mantissa);
  return sign | uint64_t(top + 874) << 52 | (uint64_t(mantissa) << (52 - top) & 0xFFFFFFFFFFFFFul);
}

// Converts an integer to f64 bits, rounded to nearest even.
uint64_t f64_of_magnitude(uint64_t magnitude, bool negative) {
  if (magnitude == uint64_t(0)) return uint64_t(0);
  const int top = top_bit(magnitude);
  const uint64_t significand = top <= 52 ? magnitude << (52 - top) : shift_rounded(magnitude, top - 52);
  // A carry out of the significand correctly increments the exponent.
  return (uint64_t(negative) << 63) | ((uint64_t(top + 1022) << 52) + significand);
}

#if T == T_F64
bool nan64(uint64_t bits) { return (bits & 0x7FFFFFFFFFFFFFFFul) > 0x7FF0000000000000ul; }

// Converts f64 bits to a narrower float with one rounding. The result has `bits_kept` explicit
// significand bits, the minimum normal exponent `least`, and the exponent bias `bias`.
uint narrow(uint64_t bits, int bits_kept, int least, int bias, uint infinity, uint sign) {
  if (nan64(bits)) return infinity | 1u << (bits_kept - 1);
  const int exponent = int(uint(bits >> 52) & 0x7FFu) - 1023;
  if (exponent > bias) return sign | infinity;
  if (exponent < least - bits_kept - 1) return sign;
  const uint64_t significand = (bits & 0xFFFFFFFFFFFFFul) | 0x10000000000000ul;
  const int below = max(least - exponent, 0);  // a subnormal result keeps fewer bits
  const uint kept = uint(shift_rounded(significand, 52 - bits_kept + below));
  return sign | (below > 0 ? kept : (uint(exponent + bias - 1) << bits_kept) + kept);
}

int64_t integer_of64(uint64_t bits, int64_t low, int64_t high) {
  if (nan64(bits)) return 0l;
  const int exponent = int(uint(bits >> 52) & 0x7FFu) - 1023;
  const bool negative = uint(bits >> 63) != 0u;
  if (exponent >= 63) return negative ? low : high;
  if (exponent < 0) return 0l;
  const uint64_t significand = (bits & 0xFFFFFFFFFFFFFul) | 0x10000000000000ul;
  const uint64_t magnitude = exponent >= 52 ? significand << (exponent - 52) : significand >> (52 - exponent);
  const int64_t value = negative ? -int64_t(magnitude) : int64_t(magnitude);
  return clamp(value, low, high);
}
#endif

// Converts x to dtype OP. The result is in `wide` if the output has 8 bytes, and in `small`
// otherwise.
void convert(BITS x, out uint small, out uint64_t wide) {
  small = 0u;
  wide = uint64_t(0);
#if T == T_F64
  const uint sign = uint(x >> 63);
  switch (OP) {
    case T_BOOL: small = uint((x & 0x7FFFFFFFFFFFFFFFul) != uint64_t(0)); break;
    case T_U8: small = uint(integer_of64(x, 0l, 255l)); break;
    case T_I8: small = uint(integer_of64(x, -128l, 127l)); break;
    case T_I32: small = uint(integer_of64(x, -2147483648l, 2147483647l)); break;
    case T_U32: small = uint(integer_of64(x, 0l, 4294967295l)); break;
    case T_I64: wide = uint64_t(integer_of64(x, int64_t(0x8000000000000000ul), 0x7FFFFFFFFFFFFFFFl)); break;
    case T_F16: small = narrow(x, 10, -14, 15, 0x7C00u, sign << 15); break;
    case T_BF16: small = narrow(x, 7, -126, 127, 0x7F80u, sign << 15); break;
    case T_F32: small = narrow(x, 23, -126, 127, 0x7F800000u, sign << 31); break;
    case T_F64: wide = x; break;
  }
#elif IS_FLOAT
  const uint bits = f32_bits(x);
  switch (OP) {
    case T_BOOL: small = uint((bits & 0x7FFFFFFFu) != 0u); break;
    case T_U8: small = uint(integer_of(bits, 0l, 255l)); break;
    case T_I8: small = uint(integer_of(bits, -128l, 127l)); break;
    case T_I32: small = uint(integer_of(bits, -2147483648l, 2147483647l)); break;
    case T_U32: small = uint(integer_of(bits, 0l, 4294967295l)); break;
    case T_I64: wide = uint64_t(integer_of(bits, int64_t(0x8000000000000000ul), 0x7FFFFFFFFFFFFFFFl)); break;
    case T_F16: small = f16_of_f32(bits); break;
    case T_BF16: small = bf16_of_f32(bits); break;
    case T_F32: small = bits; break;
    case T_F64: wide = f64_of_f32(bits); break;
  }
#else
  const VALUE value = value_of(x);
#if T == T_I8 || T == T_I32 || T == T_I64
  const bool negative = value < VALUE(0);  // tested before widening, as load_index (memory.glsl) explains
#else
  const bool negative = false;
#endif
  switch (OP) {
    case T_BOOL: small = uint(value != VALUE(0)); break;
    case T_U8: case T_I8: small = uint(value); break;
    case T_I32: case T_U32: small = uint(value); break;
    case T_I64: wide = uint64_t(int64_t(value)); break;
    default: {
      const uint sign = negative ? 0x80000000u : 0u;
#if T == T_I64
      const uint64_t magnitude = uint64_t(negative ? -value : value);
#else
      const uint64_t magnitude = uint64_t(uint(negative ? VALUE(0) - value : value));
#endif
      if (OP == T_F64) {
        wide = f64_of_magnitude(magnitude, negative);
      } else if (OP == T_F32) {
        small = sign | f32_of_magnitude(magnitude);
      } else {
        // The conversion to the intermediate f32 must not round, so that only the final conversion rounds. The lowest
        // bit that is kept is therefore a sticky bit, which is 1 if any dropped bit is 1.
        uint64_t short_magnitude = magnitude;
        const int top = magnitude == uint64_t(0) ? 0 : top_bit(magnitude);
        if (top > 22) {
          const int shift = top - 22;
          const uint64_t remainder = magnitude & ((uint64_t(1) << shift) - uint64_t(1));
          short_magnitude = (magnitude >> shift | uint64_t(remainder != uint64_t(0))) << shift;
        }
        const uint bits = sign | f32_of_magnitude(short_magnitude);
        small = OP == T_F16 ? f16_of_f32(bits) : bf16_of_f32(bits);
      }
    }
  }
#endif
}

void put(uint64_t to, BITS x) {
  uint small;
  uint64_t wide;
  convert(x, small, wide);
  if (OUT_BYTES == 8) store64(to, wide);
  else if (OUT_BYTES == 4) store32(to, small);
  else if (OUT_BYTES == 2) store16(to, small);
  else store8(to, small);
}

void put_vec4(uint64_t to, BITS4 x) {
  uvec4 small;
  u64vec4 wide;
  convert(x.x, small.x, wide.x);
  convert(x.y, small.y, wide.y);
  convert(x.z, small.z, wide.z);
  convert(x.w, small.w, wide.w);
  if (OUT_BYTES == 8) store_vec4_64(to, wide);
  else if (OUT_BYTES == 4) store_vec4_32(to, small);
  else if (OUT_BYTES == 2) store_vec4_16(to, small);
  else store_vec4_8(to, small);
}

void run_vec4() {
  Vec4Loop loop = begin_vec4_loop();
  Cursor to = cursor_of(0u, loop), from = cursor_of(1u, loop);
  while (has_next(loop)) {
    put_vec4(to.at, load_vec4(from.at));
    advance(loop);
    advance(to, loop);
    advance(from, loop);
  }
  FOR_EACH_REMAINING(i) put(address_of(0u, i), load_bits(address_of(1u, i)));
}

void main() {
  if (LAYOUT != BACKPLANE_LAYOUT_STRIDED) {
    run_vec4();
    return;
  }
  FOR_EACH(index) {
    uint64_t at[2];
    LOCATE(2, at, index);
    put(at[0], load_bits(at[1]));
  }
}
