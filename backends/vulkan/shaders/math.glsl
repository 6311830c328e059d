// SPDX-License-Identifier: Apache-2.0
// Elementary functions of f32. The functions mostly use additions, products, quotients and integer operations, so that
// all devices are equally accurate. Built-in functions may be off by 2^-11. Errors are stated relative to f64, without
// contraction and with exact division. Vulkan allows quotients to be off by 2.5 ulp. With such quotients, log is within
// 1.1 ulp and tanh within 2.4 ulp.
#include "exact.glsl"

#define kInfinity uintBitsToFloat(0x7F800000u)
#define kNaN uintBitsToFloat(0x7FC00000u)

// 2^n for n from -126 to 127.
float power_of_two(int n) { return uintBitsToFloat(uint(n + 127) << 23); }

// e^x within 1 ulp, by the method of Cephes expf. Subtracts a multiple of ln 2 from x in two parts,
// and then uses a polynomial of degree 7. Arguments that are clamped give 0 or inf.
float exp_f32(float x) {
  const float inside = clamp(x, -104.0, 88.8);
  precise float n = roundEven(inside * 1.44269504);
  precise float r = (inside - n * 0.693359375) - n * -2.12194440e-4;
  precise float p = 1.9875691500e-4;
  p = p * r + 1.3981999507e-3;
  p = p * r + 8.3334519073e-3;
  p = p * r + 4.1665795894e-2;
  p = p * r + 1.6666665459e-1;
  p = p * r + 5.0000001201e-1;
  precise float y = p * (r * r) + r + 1.0;
  const int whole = int(n), some = whole / 2;  // scales in two steps, because 2^n may be out of range
  precise float scaled = y * power_of_two(some) * power_of_two(whole - some);
  return nan_bits(floatBitsToUint(x)) ? x : scaled;
}

// ln x within 1 ulp, by the method of FreeBSD's e_logf.c. The mantissa is 1 + f in [sqrt(1/2),
// sqrt(2)), and the series is in s = f / (2 + f).
float log_f32(float x) {
  uint bits = floatBitsToUint(x);
  if (nan_bits(bits)) return x;
  if ((bits & 0x7FFFFFFFu) == 0u) return -kInfinity;
  if (bits >> 31 != 0u) return kNaN;
  if (bits == 0x7F800000u) return x;
  int k = 0;
  if (bits < 0x00800000u) {  // shifts the mantissa of a subnormal up, so that it is not flushed
    const int shift = 23 - findMSB(bits);
    bits <<= shift;
    k = -shift;
  }
  bits += 0x3F800000u - 0x3F3504F3u;
  k += int(bits >> 23) - 127;
  bits = (bits & 0x7FFFFFu) + 0x3F3504F3u;
  precise float f = uintBitsToFloat(bits) - 1.0;
  precise float s = f / (2.0 + f);
  precise float z = s * s;
  precise float w = z * z;
  precise float t1 = w * (0.40000972152 + w * 0.24279078841);
  precise float t2 = z * (0.66666662693 + w * 0.28498786688);
  precise float hfsq = 0.5 * f * f;
  precise float y = s * (hfsq + (t1 + t2)) + float(k) * 9.0580006145e-06 - hfsq + f + float(k) * 6.9313812256e-01;
  return y;
}

// 32 zero bits, followed by the bits of 2/pi, with the most significant word first. Eight words
// would suffice, but glslang (2023) assigns to an array of eight words the type of the arrays in
// parameter blocks. That type has an explicit layout, which is invalid for variables.
const uint kTwoOverPi[9] = uint[9](0u, 0xA2F9836Eu, 0x4E441529u, 0xFC2757D1u, 0xF534DDC0u, 0xDB629599u, 0x3C439041u,
                                   0xFE5163ABu, 0xDEBBC561u);

uint shifted(uint high, uint low, uint by) { return by == 0u ? high : high << by | low >> (32u - by); }

// `magnitude` contains the bits of |x|, for a finite x. Returns r and sets `quadrant` (0 to 4), such that |r| <= pi/4
// and |x| equals quadrant * pi/2 + r modulo 2 pi. Uses Payne and Hanek's reduction. |x| is mantissa * 2^s. The bits of
// 2/pi that only add multiples of 4 quadrants are omitted, and 94 bits of the fraction are kept.
float reduce_quadrant(uint magnitude, out uint quadrant) {
  quadrant = 0u;
  if (magnitude <= 0x3F490FDAu) return uintBitsToFloat(magnitude);  // |x| is at most pi/4
  const uint mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
  const uint first = (magnitude >> 23) - 120u;  // s + 30: index of the first bit of kTwoOverPi that is kept
  const uint word = first >> 5, by = first & 31u;
  const uint w0 = shifted(kTwoOverPi[word], kTwoOverPi[word + 1u], by);
  const uint w1 = shifted(kTwoOverPi[word + 1u], kTwoOverPi[word + 2u], by);
  const uint w2 = shifted(kTwoOverPi[word + 2u], kTwoOverPi[word + 3u], by);
  const uint64_t low = uint64_t(w2) * mantissa;
  const uint64_t middle = uint64_t(w1) * mantissa + (low >> 32);
  const uint64_t high = uint64_t(w0 * mantissa) + (middle >> 32);
  const uint64_t top = (high << 32) | (middle & 0xFFFFFFFFul);
  const int64_t fraction = int64_t(top << 2 | (low & 0xFFFFFFFFul) >> 30);  // signed, in units of 2^-64 quadrants
  quadrant = uint(top >> 62) + uint(fraction < 0l);
  const uint64_t size = fraction < 0l ? uint64_t(-fraction) : uint64_t(fraction);
  // `upper` has at most 23 bits, and `lower` has at most 40.
  const float upper = float(uint(size >> 40)), lower = float(size & 0xFFFFFFFFFFul);
  // high_scale + low_scale is pi/2 * 2^-24. The third constant is pi/2 * 2^-64.
  const float high_scale = uintBitsToFloat(0x33C90FDBu), low_scale = uintBitsToFloat(0xA73BBD2Eu);
  precise float r = upper * high_scale + (upper * low_scale + lower * uintBitsToFloat(0x1FC90FDBu));
  if (fraction < 0l) r = -r;
  return r;
}

// sin r and cos r for |r| <= pi/4, with the polynomials of Cephes sinf and cosf.
float sine_f32(float r) {
  precise float z = r * r;
  precise float y = ((-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1) * z * r + r;
  return y;
}
float cosine_f32(float r) {
  precise float z = r * r;
  precise float y =
      ((2.443315711809948e-5 * z - 1.388731625493765e-3) * z + 4.166664568298827e-2) * z * z - 0.5 * z + 1.0;
  return y;
}

// sin x (which = 0) or cos x (which = 1), within 2 ulp for |x| <= pi. Larger arguments have the
// same absolute error.
float sin_cos_f32(float x, uint which) {
  const uint bits = floatBitsToUint(x), magnitude = bits & 0x7FFFFFFFu;
  if (magnitude >= 0x7F800000u) return kNaN;
  uint quadrant;
  const float r = reduce_quadrant(magnitude, quadrant);
  quadrant += which;
  const float y = (quadrant & 1u) == 0u ? sine_f32(r) : cosine_f32(r);
  uint out_bits = floatBitsToUint(y);
  if ((quadrant & 2u) != 0u) out_bits ^= 0x80000000u;
  if (which == 0u) out_bits ^= bits & 0x80000000u;
  return uintBitsToFloat(out_bits);
}

// tanh x within 2 ulp, by the method of Cephes tanhf. The method uses an odd polynomial for |x|
// below 0.625, and e^2x otherwise.
float tanh_f32(float x) {
  const uint bits = floatBitsToUint(x);
  if (nan_bits(bits)) return x;
  const float t = uintBitsToFloat(bits & 0x7FFFFFFFu);
  if (t < 0.625) {
    if (t < 1.0e-4) return x;  // the square is negligible and might be flushed
    precise float z = x * x;
    precise float p =
        ((((-5.70498872745e-3 * z + 2.06390887954e-2) * z - 5.37397155531e-2) * z + 1.33314422036e-1) * z -
         3.33332819422e-1) * z * x + x;
    return p;
  }
  precise float y = t > 10.0 ? 1.0 : 1.0 - 2.0 / (exp_f32(2.0 * t) + 1.0);
  return uintBitsToFloat(floatBitsToUint(y) | (bits & 0x80000000u));
}

// erf x within 1.2 ulp. The result is x + x P(x^2) for |x| below 0.93, and 1 - e^-Q(|x|) up to 4,
// where f32 reaches 1. P and Q were fitted for this file by least squares at Chebyshev nodes,
// weighted for relative error.
float erf_f32(float x) {
  const uint bits = floatBitsToUint(x);
  if (nan_bits(bits)) return x;
  const float t = uintBitsToFloat(bits & 0x7FFFFFFFu);
  if (t < 1.0e-18) {  // the polynomial's products are negligible and might be flushed
    precise float y = x * 1.12837917;
    return y;
  }
  if (t < 0.93) {
    precise float s = x * x;
    precise float p = 8.31153084e-05;
    p = p * s + -0.000812863756;
    p = p * s + 0.00519977091;
    p = p * s + -0.0268588793;
    p = p * s + 0.11283686;
    p = p * s + -0.376126319;
    p = p * s + 0.128379166;
    precise float y = x + x * p;
    return y;
  }
  precise float q = 1.87673195e-05;
  q = q * t + -0.000405238097;
  q = q * t + 0.00401977357;
  q = q * t + -0.0246996358;
  q = q * t + 0.107604064;
  q = q * t + 0.633980274;
  q = q * t + 1.12919462;
  q = q * t + -0.000107049709;
  precise float y = t > 4.0 ? 1.0 : 1.0 - exp_f32(-q);
  return uintBitsToFloat(floatBitsToUint(y) | (bits & 0x80000000u));
}

// Returns the mantissa in [1, 2) of a finite x > 0, and sets its exponent. Uses integer operations,
// so that no subnormal is flushed.
float mantissa_of(uint bits, out int exponent) {
  exponent = int(bits >> 23) - 127;
  if (exponent == -127) {
    const int shift = 23 - findMSB(bits);
    bits <<= shift;
    exponent = -126 - shift;
  }
  return uintBitsToFloat((bits & 0x7FFFFFu) | 127u << 23);
}

// The square root of a finite x > 0, or the inverse of that root, within 0.51 ulp. The built-in
// inverse root of the mantissa may be off by 2 ulp. A Newton step with an exact remainder corrects
// the error.
float root_of(uint bits, bool inverse) {
  int exponent;
  const float mantissa = mantissa_of(bits, exponent);
  const int odd = exponent & 1, whole = (exponent - odd) / 2;
  const float m = odd != 0 ? 2.0 * mantissa : mantissa;  // m is in [1, 4)
  const float y = inversesqrt(m);
  float p, p_low, q, q_low;
  exact_product(m, y, p, p_low);
  if (inverse) {
    exact_product(p, y, q, q_low);
    precise float remainder = ((1.0 - q) - q_low) - p_low * y;
    precise float root = y + 0.5 * y * remainder;
    return root * power_of_two(-whole);
  }
  exact_product(p, p, q, q_low);
  precise float remainder = (m - q) - q_low;
  precise float root = p + 0.5 * y * remainder;
  return root * power_of_two(whole);
}

float sqrt_f32(float x) {
  const uint bits = floatBitsToUint(x);
  if (nan_bits(bits) || (bits & 0x7FFFFFFFu) == 0u || bits == 0x7F800000u) return x;
  return bits >> 31 != 0u ? kNaN : root_of(bits, false);
}

float rsqrt_f32(float x) {
  const uint bits = floatBitsToUint(x);
  if (nan_bits(bits)) return x;
  if ((bits & 0x7FFFFFFFu) == 0u) return uintBitsToFloat(0x7F800000u | (bits & 0x80000000u));
  if (bits >> 31 != 0u) return kNaN;
  return bits == 0x7F800000u ? 0.0 : root_of(bits, true);
}

// a / b within 2.5 ulp. The built-in division guarantees 2.5 ulp only for divisors from 2^-126
// to 2^126. For other divisors, both operands are scaled exactly.
float divide_f32(float a, float b) {
  const uint exponent = floatBitsToUint(b) >> 23 & 0xFFu;
  const float scale = exponent == 0u ? 16777216.0 : exponent >= 252u && exponent != 255u ? 0.0625 : 1.0;
  precise float y = (a * scale) / (b * scale);
  return y;
}

// a / b within 1 ulp. An exact remainder corrects the built-in quotient of the mantissas.
float divide_closely_f32(float a, float b) {
  const uint x = floatBitsToUint(a), y = floatBitsToUint(b), left = x & 0x7FFFFFFFu, right = y & 0x7FFFFFFFu;
  if (left == 0u || right == 0u || left >= 0x7F800000u || right >= 0x7F800000u) return divide_f32(a, b);
  int up, down;
  const float dividend = mantissa_of(left, up), divisor = mantissa_of(right, down);
  const float quotient = dividend / divisor;
  float product, low;
  exact_product(quotient, divisor, product, low);
  precise float remainder = (dividend - product) - low;
  precise float closer = quotient + remainder / divisor;
  // The result is scaled in two steps, because 2^n may be out of range.
  const int whole = clamp(up - down, -252, 252), some = whole / 2;
  precise float scaled = closer * power_of_two(some) * power_of_two(whole - some);
  return uintBitsToFloat(floatBitsToUint(scaled) | ((x ^ y) & 0x80000000u));
}
