// SPDX-License-Identifier: Apache-2.0
// Activations and powers of f32. The including file must include dtype.glsl first.
#include "math.glsl"

// 1 / (1 + e^-x). If x is below about -88.7, the divisor overflows to infinity, so the result is 0.
float sigmoid_f32(float x) {
  precise float divisor = 1.0 + exp_f32(-x);
  return divide_f32(1.0, divisor);
}
float silu_f32(float x) {
  precise float divisor = 1.0 + exp_f32(-x);
  return divide_f32(x, divisor);
}

// x / 2 * erfc(-x / sqrt(2)). For z > 0, erfc(z) is t e^(P(t) - z^2) with t = 1 / (1 + z / 2) and a
// Chebyshev fit P (Numerical Recipes, erfcc). The form with 1 + erf would cancel for negative x.
float gelu_erf_f32(float x) {
  const float t = divide_f32(1.0, 1.0 + abs(x) * 0.35355339);
  precise float p = 0.17087277;
  p = p * t + -0.82215223;
  p = p * t + 1.48851587;
  p = p * t + -1.13520398;
  p = p * t + 0.27886807;
  p = p * t + -0.18628806;
  p = p * t + 0.09678418;
  p = p * t + 0.37409196;
  p = p * t + 1.00002368;
  p = p * t + -1.26551223;
  precise float power = p - 0.5 * (x * x);
  precise float tail = 0.5 * t * exp_f32(power);
  precise float y = x * (x < 0.0 ? tail : 1.0 - tail);
  return y;
}
// x * sigmoid(2 v) with v = sqrt(2 / pi) (x + 0.044715 x^3). This equals x * (1 + tanh v) / 2 but
// does not cancel.
float gelu_tanh_f32(float x) {
  precise float divisor = 1.0 + exp_f32(x * (x * x * -0.071354816 + -1.59576912));
  return divide_f32(x, divisor);
}

bool is_whole_f32(float x) { return floor(x) == x; }

// x^y, computed as e^(y ln |x|). The sign, and the cases in which the logarithm fails, are handled
// separately.
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
