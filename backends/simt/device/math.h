// SPDX-License-Identifier: Apache-2.0
// Elementary functions of f32. They consist of additions, products, quotients, square roots, rounding and integer
// operations, which are accurate on all stacks. The functions tolerate built-in quotients with errors of 2.5 ulp and
// built-in square roots with errors of 3 ulp, because OpenCL permits such errors. Comments state a function's error
// relative to the result in f64. A stack with SIMT_NATIVE_MATH uses its own functions where they are accurate enough
// and take fewer instructions.
#pragma once
#include "exact.h"

SIMT_FN float infinity() { return float_of_bits(0x7F800000u); }
SIMT_FN float not_a_number() { return float_of_bits(0x7FC00000u); }
SIMT_FN bool is_nan(float x) { return is_nan_bits(bits_of_float(x)); }
SIMT_FN float with_sign(float x, u32 sign_bits) { return float_of_bits(bits_of_float(x) | (sign_bits & 0x80000000u)); }
// 2^n for n from -126 to 127.
SIMT_FN float power_of_two(i32 n) { return float_of_bits((u32)(n + 127) << 23); }

// e^x within 1 ulp, by the method of Cephes expf. Subtracts a multiple of ln 2 from x in two parts,
// and then uses a polynomial of degree 7. Arguments whose results are outside the range of f32 are
// clamped, and give 0 or inf.
#ifdef SIMT_NATIVE_MATH
SIMT_FN float exp_f32(float x) { return native_exp(x); }
#else
SIMT_FN float exp_f32(float x) {
  const float inside = x < -104.0f ? -104.0f : x > 88.8f ? 88.8f : x;
  const float n = round_even(inside * 1.44269504f);
  const float r = multiply_add(n, 2.12194440e-4f, multiply_add(n, -0.693359375f, inside));
  float p = 1.9875691500e-4f;
  p = multiply_add(p, r, 1.3981999507e-3f);
  p = multiply_add(p, r, 8.3334519073e-3f);
  p = multiply_add(p, r, 4.1665795894e-2f);
  p = multiply_add(p, r, 1.6666665459e-1f);
  p = multiply_add(p, r, 5.0000001201e-1f);
  const float y = multiply_add(p, r * r, r) + 1.0f;
  // Scales in two steps, because 2^n may be out of range. A conversion of NaN to an integer is undefined.
  const i32 whole = is_nan(x) ? 0 : (i32)n, some = whole / 2;
  const float scaled = y * power_of_two(some) * power_of_two(whole - some);
  return is_nan(x) ? x : scaled;
}
#endif

// ln x within 1 ulp, by the method of FreeBSD's e_logf.c. The mantissa of x is scaled to 1 + f in
// [sqrt(1/2), sqrt(2)). ln (1 + f) is computed from a polynomial in s = f / (2 + f).
SIMT_FN float log_f32(float x) {
  u32 bits = bits_of_float(x);
  const u32 given = bits;
  i32 k = 0;
  if (bits < 0x00800000u) {  // shifts the mantissa of a subnormal up, so that no operation flushes it
    const u32 shift = bits == 0u ? 0u : leading_zeros(bits) - 8u;
    bits <<= shift;
    k = -(i32)shift;
  }
  bits += 0x3F800000u - 0x3F3504F3u;
  k += (i32)(bits >> 23) - 127;
  bits = (bits & 0x7FFFFFu) + 0x3F3504F3u;
  const float f = float_of_bits(bits) - 1.0f;
  const float s = f / (2.0f + f), z = s * s, w = z * z;
  const float t1 = w * (0.40000972152f + w * 0.24279078841f), t2 = z * (0.66666662693f + w * 0.28498786688f);
  const float hfsq = 0.5f * f * f;
  const float y = s * (hfsq + (t1 + t2)) + (float)k * 9.0580006145e-06f - hfsq + f + (float)k * 6.9313812256e-01f;
  if (is_nan_bits(given) || given == 0x7F800000u) return x;
  if ((given & 0x7FFFFFFFu) == 0u) return -infinity();
  return given >> 31 != 0u ? not_a_number() : y;
}

// Returns word `i` of a bit string that consists of 32 zero bits and the bits of 2/pi. Word 0 is
// the most significant.
SIMT_FN u32 two_over_pi(u32 i) {
  switch (i) {
    case 0:
      return 0u;
    case 1:
      return 0xA2F9836Eu;
    case 2:
      return 0x4E441529u;
    case 3:
      return 0xFC2757D1u;
    case 4:
      return 0xF534DDC0u;
    case 5:
      return 0xDB629599u;
    case 6:
      return 0x3C439041u;
    case 7:
      return 0xFE5163ABu;
    default:
      return 0xDEBBC561u;
  }
}
SIMT_FN u32 shifted(u32 high, u32 low, u32 by) { return by == 0u ? high : high << by | low >> (32u - by); }

// `bits` contains the bits of |x|, for a finite x. Returns r and sets `quadrant` (0 to 4), such that |r| <= pi/4 and
// |x| equals quadrant * pi/2 + r modulo 2 pi. Uses Payne and Hanek's reduction. |x| is mantissa * 2^s. The bits of 2/pi
// that only add multiples of 4 quadrants are omitted, and 94 bits of the fraction are kept.
SIMT_FN float reduce_quadrant(u32 bits, u32& quadrant) {
  quadrant = 0u;
  if (bits <= 0x3F490FDAu) return float_of_bits(bits);  // |x| is at most pi/4
  const u32 mantissa = (bits & 0x7FFFFFu) | 0x800000u;
  const u32 first = (bits >> 23) - 120u;  // s + 30: index of the first bit of two_over_pi that is kept
  const u32 word = first >> 5, by = first & 31u;
  const u32 w0 = shifted(two_over_pi(word), two_over_pi(word + 1u), by);
  const u32 w1 = shifted(two_over_pi(word + 1u), two_over_pi(word + 2u), by);
  const u32 w2 = shifted(two_over_pi(word + 2u), two_over_pi(word + 3u), by);
  const u64 low = (u64)w2 * mantissa;
  const u64 middle = (u64)w1 * mantissa + (low >> 32);
  const u64 high = (u64)(w0 * mantissa) + (middle >> 32);
  const u64 top = (high << 32) | (middle & 0xFFFFFFFFu);
  const i64 fraction = (i64)(top << 2 | (low & 0xFFFFFFFFu) >> 30);  // signed, in units of 2^-64 quadrants
  quadrant = (u32)(top >> 62) + (u32)(fraction < 0);
  const u64 size = fraction < 0 ? (u64)0 - (u64)fraction : (u64)fraction;
  // `upper` has at most 23 bits, and `lower` has at most 40.
  const float upper = (float)(u32)(size >> 40), lower = (float)(size & 0xFFFFFFFFFFul);
  // high_scale + low_scale is pi/2 * 2^-24. The third constant is pi/2 * 2^-64.
  const float high_scale = float_of_bits(0x33C90FDBu), low_scale = float_of_bits(0xA73BBD2Eu);
  const float r = upper * high_scale + (upper * low_scale + lower * float_of_bits(0x1FC90FDBu));
  return fraction < 0 ? -r : r;
}

// sin r and cos r for |r| <= pi/4, with the polynomials of Cephes sinf and cosf.
SIMT_FN float sine_f32(float r) {
  const float z = r * r;
  return ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * r + r;
}
SIMT_FN float cosine_f32(float r) {
  const float z = r * r;
  return ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z - 0.5f * z + 1.0f;
}

// sin x (which = 0) or cos x (which = 1), within 2 ulp for |x| <= pi. For larger |x|, the bound on
// the absolute error is the same.
SIMT_FN float sin_cos_f32(float x, u32 which) {
  const u32 bits = bits_of_float(x), size = bits & 0x7FFFFFFFu;
  if (size >= 0x7F800000u) return not_a_number();
  u32 quadrant;
  const float r = reduce_quadrant(size, quadrant);
  quadrant += which;
  u32 out = bits_of_float((quadrant & 1u) == 0u ? sine_f32(r) : cosine_f32(r));
  if ((quadrant & 2u) != 0u) out ^= 0x80000000u;
  if (which == 0u) out ^= bits & 0x80000000u;
  return float_of_bits(out);
}

// tanh x within 2 ulp, by the method of Cephes tanhf. The method uses an odd polynomial for |x|
// below 0.625, and e^2x otherwise.
#ifdef SIMT_NATIVE_MATH
SIMT_FN float tanh_f32(float x) { return native_tanh(x); }
#else
SIMT_FN float tanh_f32(float x) {
  const u32 bits = bits_of_float(x);
  const float t = magnitude(x), z = x * x;
  const float near =
      ((((-5.70498872745e-3f * z + 2.06390887954e-2f) * z - 5.37397155531e-2f) * z + 1.33314422036e-1f) * z -
       3.33332819422e-1f) *
          z * x +
      x;
  const float far = t > 10.0f ? 1.0f : 1.0f - 2.0f / (exp_f32(2.0f * t) + 1.0f);
  if (is_nan_bits(bits) || t < 1.0e-4f) return x;  // here x^2 is negligible, and a device might flush it
  return t < 0.625f ? near : with_sign(far, bits);
}
#endif

// erf x within 1.2 ulp. The result is x + x P(x^2) for |x| below 0.93, and 1 - e^-Q(|x|) up to 4,
// where f32 reaches 1. P and Q were fitted by least squares at Chebyshev nodes, weighted for
// relative error.
#ifdef SIMT_NATIVE_MATH
SIMT_FN float erf_f32(float x) { return native_erf(x); }
#else
SIMT_FN float erf_f32(float x) {
  const u32 bits = bits_of_float(x);
  const float t = magnitude(x), s = x * x;
  float p = 8.31153084e-05f;
  p = p * s + -0.000812863756f;
  p = p * s + 0.00519977091f;
  p = p * s + -0.0268588793f;
  p = p * s + 0.11283686f;
  p = p * s + -0.376126319f;
  p = p * s + 0.128379166f;
  float q = 1.87673195e-05f;
  q = q * t + -0.000405238097f;
  q = q * t + 0.00401977357f;
  q = q * t + -0.0246996358f;
  q = q * t + 0.107604064f;
  q = q * t + 0.633980274f;
  q = q * t + 1.12919462f;
  q = q * t + -0.000107049709f;
  const float far = t > 4.0f ? 1.0f : 1.0f - exp_f32(-q);
  if (is_nan_bits(bits)) return x;
  if (t < 1.0e-18f) return x * 1.12837917f;  // here s is negligible, and a device might flush it
  return t < 0.93f ? x + x * p : with_sign(far, bits);
}
#endif

#ifdef SIMT_NATIVE_MATH
SIMT_FN float sqrt_f32(float x) { return root(x); }
SIMT_FN float rsqrt_f32(float x) { return 1.0f / root(x); }
SIMT_FN float divide_f32(float a, float b) { return a / b; }
SIMT_FN float divide_closely_f32(float a, float b) { return a / b; }
// a / b for b >= 1, within 2 ulp of a. The result is 0 if b exceeds 2^126.
SIMT_FN float divide_by_large_f32(float a, float b) { return a * native_inverse(b); }
#else
// Returns the mantissa in [1, 2) of a finite x > 0, and sets its exponent. Uses integer operations,
// so that no subnormal is flushed.
SIMT_FN float mantissa_of(u32 bits, i32& exponent) {
  exponent = (i32)(bits >> 23) - 127;
  if (exponent == -127) {
    const u32 shift = bits == 0u ? 0u : leading_zeros(bits) - 8u;
    bits <<= shift;
    exponent = -126 - (i32)shift;
  }
  return float_of_bits((bits & 0x7FFFFFu) | 127u << 23);
}

// The square root of a finite x > 0, or the inverse of that root, within 0.51 ulp. A Newton step
// with an exact remainder corrects the built-in root of the mantissa.
SIMT_FN float root_of(u32 bits, bool inverse) {
  i32 exponent;
  const float mantissa = mantissa_of(bits, exponent);
  const i32 odd = exponent & 1, whole = (exponent - odd) / 2;
  const float m = odd != 0 ? 2.0f * mantissa : mantissa;  // m is in [1, 4)
  const float y = 1.0f / root(m);
  const Exact p = exact_product(m, y);
  if (inverse) {
    const Exact q = exact_product(p.high, y);
    const float remainder = ((1.0f - q.high) - q.low) - p.low * y;
    return (y + 0.5f * y * remainder) * power_of_two(-whole);
  }
  const Exact q = exact_product(p.high, p.high);
  const float remainder = (m - q.high) - q.low;
  return (p.high + 0.5f * y * remainder) * power_of_two(whole);
}
SIMT_FN float sqrt_f32(float x) {
  const u32 bits = bits_of_float(x);
  if (is_nan_bits(bits) || (bits & 0x7FFFFFFFu) == 0u || bits == 0x7F800000u) return x;
  return bits >> 31 != 0u ? not_a_number() : root_of(bits, false);
}
SIMT_FN float rsqrt_f32(float x) {
  const u32 bits = bits_of_float(x);
  if (is_nan_bits(bits)) return x;
  if ((bits & 0x7FFFFFFFu) == 0u) return with_sign(infinity(), bits);
  if (bits >> 31 != 0u) return not_a_number();
  return bits == 0x7F800000u ? 0.0f : root_of(bits, true);
}

// a / b within 2.5 ulp. OpenCL's division guarantees 2.5 ulp only for divisors from 2^-126 to
// 2^126. For other divisors, both operands are scaled exactly.
SIMT_FN float divide_f32(float a, float b) {
  const u32 exponent = bits_of_float(b) >> 23 & 0xFFu;
  const float scale = exponent == 0u ? 16777216.0f : exponent >= 252u && exponent != 255u ? 0.0625f : 1.0f;
  return (a * scale) / (b * scale);
}
// a / b within 1 ulp. An exact remainder corrects the built-in quotient of the mantissas.
SIMT_FN float divide_closely_f32(float a, float b) {
  const u32 x = bits_of_float(a), y = bits_of_float(b), left = x & 0x7FFFFFFFu, right = y & 0x7FFFFFFFu;
  if (left == 0u || right == 0u || left >= 0x7F800000u || right >= 0x7F800000u) return divide_f32(a, b);
  i32 up, down;
  const float dividend = mantissa_of(left, up), divisor = mantissa_of(right, down);
  const float quotient = dividend / divisor;
  const Exact product = exact_product(quotient, divisor);
  const float remainder = (dividend - product.high) - product.low;
  const float closer = quotient + remainder / divisor;
  // The result is scaled in two steps, because 2^n may be out of range.
  i32 whole = up - down;
  whole = whole < -252 ? -252 : whole > 252 ? 252 : whole;
  const i32 some = whole / 2;
  return with_sign(closer * power_of_two(some) * power_of_two(whole - some), x ^ y);
}
SIMT_FN float divide_by_large_f32(float a, float b) { return divide_f32(a, b); }
#endif

// Returns p * t + c. Without SIMT_NATIVE_MATH, the product is rounded before the addition: on such stacks, each
// constant of a fused instruction would occupy a register.
#ifdef SIMT_NATIVE_MATH
SIMT_FN float polynomial_step(float p, float t, float c) { return multiply_add(p, t, c); }
#else
SIMT_FN float polynomial_step(float p, float t, float c) { return p * t + c; }
#endif
// 1 / (1 + e^-x). If x is below about -88.7, the divisor overflows to infinity, so the result is 0.
SIMT_FN float sigmoid_f32(float x) { return divide_by_large_f32(1.0f, 1.0f + exp_f32(-x)); }
SIMT_FN float silu_f32(float x) { return divide_by_large_f32(x, 1.0f + exp_f32(-x)); }

// x / 2 * erfc(-x / sqrt(2)). For z > 0, erfc(z) is t e^(P(t) - z^2) with t = 1 / (1 + z / 2) and a
// Chebyshev fit P (Numerical Recipes, erfcc). The form with 1 + erf would cancel for negative x.
SIMT_FN float gelu_erf_f32(float x) {
  const float t = divide_by_large_f32(1.0f, polynomial_step(magnitude(x), 0.35355339f, 1.0f));
  float p = 0.17087277f;
  p = polynomial_step(p, t, -0.82215223f);
  p = polynomial_step(p, t, 1.48851587f);
  p = polynomial_step(p, t, -1.13520398f);
  p = polynomial_step(p, t, 0.27886807f);
  p = polynomial_step(p, t, -0.18628806f);
  p = polynomial_step(p, t, 0.09678418f);
  p = polynomial_step(p, t, 0.37409196f);
  p = polynomial_step(p, t, 1.00002368f);
  p = polynomial_step(p, t, -1.26551223f);
  // Many CPUs need about a hundred times as long for an exponential whose result is subnormal, so the tail is 0 then.
  const float power = p - 0.5f * (x * x);
  const float tail = power < -87.0f ? 0.0f : 0.5f * t * exp_f32(power < -87.0f ? 0.0f : power);
  return x * (x < 0.0f ? tail : 1.0f - tail);
}
// x * sigmoid(2 v) with v = sqrt(2 / pi) (x + 0.044715 x^3). This equals x * (1 + tanh v) / 2 but
// does not cancel.
SIMT_FN float gelu_tanh_f32(float x) {
  return divide_by_large_f32(x, 1.0f + exp_f32(x * polynomial_step(x * x, -0.071354816f, -1.59576912f)));
}

SIMT_FN bool is_whole_f32(float x) { return round_down(x) == x; }
// x^y, computed as e^(y ln |x|). Special cases are x = 1, y = 0, and x with a sign bit.
SIMT_FN float pow_f32(float x, float y) {
  const u32 bits = bits_of_float(x);
  if (x == 1.0f || y == 0.0f) return 1.0f;
  const float power = exp_f32(y * log_f32(magnitude(x)));
  const bool whole = is_whole_f32(y);
  if (is_nan_bits(bits) || bits >> 31 == 0u) return power;
  if (!whole && bits != 0xFF800000u && bits != 0x80000000u) return not_a_number();
  return whole && !is_whole_f32(0.5f * y) ? -power : power;
}
