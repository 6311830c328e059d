// SPDX-License-Identifier: Apache-2.0
// out = f(x) for each element; OP is the operator's id.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "dtype.glsl"
#if IS_FLOAT
#include "math.glsl"
#endif

#if IS_FLOAT
BITS apply(BITS x) {
  // Signs alone, and whole numbers: no arithmetic that could flush or quieten.
  if (OP == 7) return x ^ SIGN_BIT;            // neg
  if (OP == 8) return x & ~SIGN_BIT;           // abs
  const float value = value_of(x);
  if (OP == 9 || OP == 10) {                   // floor, rint
    if (is_nan(x)) return x;
    const float whole = OP == 9 ? floor(value) : roundEven(value);
    return bits_of(whole) | (x & SIGN_BIT);
  }
  precise float y = 0.0;
  switch (OP) {
    case 11: y = is_nan(x) ? value : value < 0.0 ? kNaN : value == 0.0 ? value : sqrt(value); break;
    case 12: y = rsqrt_f32(value); break;
    case 13: y = exp_f32(value); break;
    case 14: y = log_f32(value); break;
    case 15: y = sin_cos_f32(value, 0u); break;
    case 16: y = sin_cos_f32(value, 1u); break;
    case 17: y = tanh_f32(value); break;
    case 18: y = erf_f32(value); break;
  }
  return bits_of(y);
}
#else
BITS apply(BITS x) {
#if T != T_BOOL
  const VALUE value = value_of(x);
  if (OP == 7) return bits_of(VALUE(0) - value);
  if (OP == 8) return bits_of(value < VALUE(0) ? VALUE(0) - value : value);
  return ~x;
#else
  return x == 0u ? 1u : 0u;
#endif
}
#endif

void main() {
  FOR_EACH(index) {
    uint64_t at[2];
    LOCATE(2, at, index);
    store_bits(at[0], apply(load_bits(at[1])));
  }
}
