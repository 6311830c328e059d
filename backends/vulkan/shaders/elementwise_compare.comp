// SPDX-License-Identifier: Apache-2.0
// out is 1 if predicate OP is true of `a` and `b`, and 0 otherwise. Compares integer keys that have
// the order of the numbers, so that no subnormal is flushed.
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

void run_vec4() {
  Vec4Loop loop = begin_vec4_loop();
  Cursor to = cursor_of(0u, loop), a = cursor_of(1u, loop), b = cursor_of(2u, loop);
  while (has_next(loop)) {
    const BITS4 x = MODE == 1 ? BITS4(load_bits(a.at)) : load_vec4(a.at);
    const BITS4 y = MODE == 2 ? BITS4(load_bits(b.at)) : load_vec4(b.at);
    store_vec4_8(to.at, uvec4(holds(x.x, y.x), holds(x.y, y.y), holds(x.z, y.z), holds(x.w, y.w)));
    advance(loop);
    advance(to, loop);
    advance(a, loop);
    advance(b, loop);
  }
  FOR_EACH_REMAINING(i)
    store8(address_of(0u, i), uint(holds(load_bits(address_of(1u, i)), load_bits(address_of(2u, i)))));
}

void main() {
  if (LAYOUT != BACKPLANE_LAYOUT_STRIDED) {
    run_vec4();
    return;
  }
  FOR_EACH(index) {
    uint64_t at[3];
    LOCATE(3, at, index);
    store8(at[0], uint(holds(load_bits(at[1]), load_bits(at[2]))));
  }
}
