// SPDX-License-Identifier: Apache-2.0
// out = a predicate b, as bool; OP is the predicate. On ordering integers: comparisons flush nothing.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "dtype.glsl"

bool holds(BITS x, BITS y) {
#if IS_FLOAT
  if (is_nan(x) || is_nan(y)) return OP == 1;
#endif
  const ORDER a = order_of(x), b = order_of(y);
  switch (OP) {
    case 0: return a == b;
    case 1: return a != b;
    case 2: return a < b;
    case 3: return a <= b;
    case 4: return a > b;
  }
  return a >= b;
}

void main() {
  FOR_EACH(index) {
    uint64_t at[3];
    LOCATE(3, at, index);
    store8(at[0], uint(holds(load_bits(at[1]), load_bits(at[2]))));
  }
}
