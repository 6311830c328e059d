// SPDX-License-Identifier: Apache-2.0
// out = f(x) for each element. OP is the operator's id. VARIANT 1 selects gelu's tanh
// approximation.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "dtype.glsl"
#include "vec4_loop.glsl"
#if IS_FLOAT
#include "activation.glsl"
#endif

#if IS_FLOAT
BITS apply(BITS x) {
  // The sign operators and the rounding operators avoid arithmetic that could flush subnormals or
  // quiet a NaN.
  if (OP == BP_OP_NEG) return x ^ SIGN_BIT;
  if (OP == BP_OP_ABS) return x & ~SIGN_BIT;
  const float value = value_of(x);
  if (OP == BP_OP_FLOOR || OP == BP_OP_RINT) {
    if (is_nan(x)) return x;
    const float whole = OP == BP_OP_FLOOR ? floor(value) : roundEven(value);
    return bits_of(whole) | (x & SIGN_BIT);
  }
  precise float y = 0.0;
  switch (OP) {
    case BP_OP_SQRT: y = sqrt_f32(value); break;
    case BP_OP_RSQRT: y = rsqrt_f32(value); break;
    case BP_OP_EXP: y = exp_f32(value); break;
    case BP_OP_LOG: y = log_f32(value); break;
    case BP_OP_SIN: y = sin_cos_f32(value, 0u); break;
    case BP_OP_COS: y = sin_cos_f32(value, 1u); break;
    case BP_OP_TANH: y = tanh_f32(value); break;
    case BP_OP_ERF: y = erf_f32(value); break;
    case BP_OP_GELU: y = VARIANT == 1 ? gelu_tanh_f32(value) : gelu_erf_f32(value); break;
    case BP_OP_SILU: y = silu_f32(value); break;
    case BP_OP_SIGMOID: y = sigmoid_f32(value); break;
  }
  return bits_of(y);
}
#else
BITS apply(BITS x) {
#if T != T_BOOL
  const VALUE value = value_of(x);
  if (OP == BP_OP_NEG) return bits_of(VALUE(0) - value);
  if (OP == BP_OP_ABS) return bits_of(value < VALUE(0) ? VALUE(0) - value : value);
  return ~x;
#else
  return x == 0u ? 1u : 0u;
#endif
}
#endif

void run_vec4() {
  Vec4Loop loop = begin_vec4_loop();
  Cursor to = cursor_of(0u, loop), from = cursor_of(1u, loop);
  while (has_next(loop)) {
    const BITS4 x = load_vec4(from.at);
    store_vec4(to.at, BITS4(apply(x.x), apply(x.y), apply(x.z), apply(x.w)));
    advance(loop);
    advance(to, loop);
    advance(from, loop);
  }
  FOR_EACH_REMAINING(i) store_bits(address_of(0u, i), apply(load_bits(address_of(1u, i))));
}

void main() {
  if (LAYOUT != BACKPLANE_LAYOUT_STRIDED) {
    run_vec4();
    return;
  }
  FOR_EACH(index) {
    uint64_t at[2];
    LOCATE(2, at, index);
    store_bits(at[0], apply(load_bits(at[1])));
  }
}
