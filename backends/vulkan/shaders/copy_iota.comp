// SPDX-License-Identifier: Apache-2.0
// out = start + i * step. Scalar 0 is start, and scalar 1 is step. Operand 1 is a counter, which
// has no memory. Its address is the index i along the axis.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "dtype.glsl"
#include "exact.glsl"

#if IS_FLOAT
BITS element(uint64_t i) {
  const float start = value_of(load_bits(params.scalar_at[0])), step = value_of(load_bits(params.scalar_at[1]));
  // f32 represents both parts of i exactly.
  const float lower = float(uint(i & 0xFFFFFFul)), upper = float(uint(i >> 24)) * 16777216.0;
  float p, p_low, s, s_low, q, q_low;
  exact_product(lower, step, p, p_low);
  exact_sum(start, p, s, s_low);
  precise float remainder = s_low + p_low;
  precise float y = s + remainder;
  if (upper != 0.0) {
    exact_product(upper, step, q, q_low);
    exact_sum(s, q, s, s_low);
    y = s + (s_low + (remainder + q_low));
  }
  return bits_of(y);
}
#else
BITS element(uint64_t i) {
  const VALUE start = value_of(load_bits(params.scalar_at[0])), step = value_of(load_bits(params.scalar_at[1]));
  return bits_of(start + VALUE(i) * step);
}
#endif

void main() {
  FOR_EACH(index) {
    uint64_t at[2];
    LOCATE(2, at, index);
    store_bits(at[0], element(at[1]));
  }
}
