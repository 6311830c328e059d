// SPDX-License-Identifier: Apache-2.0
// out = a predicate b, as bool; OP is the predicate. On ordering integers: comparisons flush nothing.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "dtype.glsl"
#include "packed.glsl"

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
  if (PACKED == 1) {
    const uint64_t to = params.operands[0].address;
    const Packed a = packed_operand(1), b = packed_operand(2);
    const bool aligned = IS_ALIGNED(to, 1) && a.aligned && b.aligned;
    const uint count = params.count;
    FOR_EACH_FOUR(first, count) {
      if (aligned && count - first >= FOUR) {
        const BITS4 x = take_four(a, first), y = take_four(b, first);
        store_four8(to + first, uvec4(holds(x.x, y.x), holds(x.y, y.y), holds(x.z, y.z), holds(x.w, y.w)));
      } else {
        for (uint i = first; i < min(count, first + FOUR); ++i) {
          store8(to + i, uint(holds(TAKE(a, i), TAKE(b, i))));
        }
      }
    }
    return;
  }
  FOR_EACH(index) {
    uint64_t at[3];
    LOCATE(3, at, index);
    store8(at[0], uint(holds(load_bits(at[1]), load_bits(at[2]))));
  }
}
