// SPDX-License-Identifier: Apache-2.0
// Activations and powers of f32. Needs dtype.glsl.
#include "math.glsl"

// 1 / (1 + e^-x); below -88 the divisor is infinite.
float sigmoid_f32(float x) {
  precise float divisor = 1.0 + exp_f32(-x);
  return divide_f32(1.0, divisor);
}
float silu_f32(float x) {
  precise float divisor = 1.0 + exp_f32(-x);
  return divide_f32(x, divisor);
}

// x * ((1 + erf(x / root 2)) / 2); halved first, which is exact also where x is subnormal.
float gelu_erf_f32(float x) {
  precise float y = x * (0.5 * (erf_f32(x * 0.70710678) + 1.0));
  return y;
}
// x * ((1 + tanh(root(2 / pi) (x + 0.044715 x^3))) / 2)
float gelu_tanh_f32(float x) {
  precise float y = x * (0.5 * (tanh_f32(x * (x * x * 0.035677408 + 0.79788456)) + 1.0));
  return y;
}

bool is_whole_f32(float x) { return floor(x) == x; }

// x^y as e^(y ln |x|), with the sign of an odd power, and the corners that the logarithm does not know.
float pow_f32(float x, float y) {
  const uint bits = floatBitsToUint(x);
  if (x == 1.0 || y == 0.0) return 1.0;
  precise float power = exp_f32(y * log_f32(uintBitsToFloat(bits & 0x7FFFFFFFu)));
  const bool whole = is_whole_f32(y);
  if (nan_bits(bits) || bits >> 31 == 0u) return power;
  if (!whole && bits != 0xFF800000u && bits != 0x80000000u) return kNaN;
  const bool odd = whole && !is_whole_f32(0.5 * y);
  return odd ? -power : power;
}
