// SPDX-License-Identifier: Apache-2.0
// out = a predicate b, as bool; OP is the predicate. On ordering integers: comparisons flush nothing.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "dtype.glsl"
#include "vec4_loop.glsl"

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

void by_four() {
  Fours fours = fours_of_thread();
  Walk to = walk_of(0u, fours), a = walk_of(1u, fours), b = walk_of(2u, fours);
  while (any_left(fours)) {
    const BITS4 x = MODE == 1 ? BITS4(load_bits(a.at)) : load_four(a.at);
    const BITS4 y = MODE == 2 ? BITS4(load_bits(b.at)) : load_four(b.at);
    store_four8(to.at, uvec4(holds(x.x, y.x), holds(x.y, y.y), holds(x.z, y.z), holds(x.w, y.w)));
    go_on(fours);
    go_on(to, fours);
    go_on(a, fours);
    go_on(b, fours);
  }
  FOR_THE_REST(i) store8(address_of(0u, i), uint(holds(load_bits(address_of(1u, i)), load_bits(address_of(2u, i)))));
}

void main() {
  if (PACKED != 0) {
    by_four();
    return;
  }
  FOR_EACH(index) {
    uint64_t at[3];
    LOCATE(3, at, index);
    store8(at[0], uint(holds(load_bits(at[1]), load_bits(at[2]))));
  }
}
