// SPDX-License-Identifier: Apache-2.0
// out = a predicate b, as bool; OP is the predicate. On ordering integers: comparisons flush nothing.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "dtype.glsl"
#include "by_four.glsl"

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

PUT_FOUR(put_four8, uvec4, store_four8, store8)

void main() {
  if (BY_FOUR) {
    const Rows to = rows_of(0, 1u), a = rows_of(1, BYTES), b = rows_of(2, BYTES);
    const uint count = params.count, extent = ROW_EXTENT;
    FOR_EACH_FOUR(first, count) {
      if (count - first >= FOUR) {
        const Place place = place_of(first, extent);
        const BITS4 x = take_four(a, place), y = take_four(b, place);
        put_four8(to, place, uvec4(holds(x.x, y.x), holds(x.y, y.y), holds(x.z, y.z), holds(x.w, y.w)));
      } else {
        for (uint i = first; i < count; ++i) {
          const Place place = place_of(i, extent);
          store8(address_of(to, place), uint(holds(load_bits(address_of(a, place)), load_bits(address_of(b, place)))));
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
