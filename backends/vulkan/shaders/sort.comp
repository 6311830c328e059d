// SPDX-License-Identifier: Apache-2.0
// Stable sort. Operands: values, indices and x, all with stride 0 along the axis, and a counter
// along the axis. The counter is an operand without memory, and its address is the index.
// params.extra[0] to [3]: extent; strides of x, values and indices along the axis. OP 1 means
// descending. Values of MODE:
// BACKPLANE_SORT_COUNT: one thread per element computes the element's rank, which is the number of
// elements that sort before it.
// BACKPLANE_SORT_BEGIN: values = x, indices = 0, 1, 2, ...
// BACKPLANE_SORT_STEP: one step of a bitonic network (Batcher 1968) on values and indices in place,
// with one thread per pair. params.extra[4] is the distance between the elements of a pair.
// params.extra[5] is 1 for the first step of a merge, which pairs an element with its mirror image
// in a block of twice the distance. The element of a pair that sorts first always goes to the lower
// index. Positions past the end sort last, so they are never accessed.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "dtype.glsl"

ORDER key_of(BITS x) { return OP == 1 ? ~order_of(x) : order_of(x); }

void main() {
  const uint extent = uint(params.extra[0]);
  FOR_EACH(index) {
    uint64_t at[4];
    LOCATE(4, at, index);
    const uint own = uint(at[3]);
    if (MODE == BACKPLANE_SORT_STEP) {
      const uint distance = uint(params.extra[4]);
      const uint within = own & (distance - 1u), block = (own - within) * 2u;  // distance is a power of two
      const uint low = block + within;
      const uint high = params.extra[5] != 0l ? block + 2u * distance - 1u - within : low + distance;
      if (high >= extent) continue;
      const uint64_t low_value = at[0] + uint64_t(params.extra[2] * int64_t(low));
      const uint64_t high_value = at[0] + uint64_t(params.extra[2] * int64_t(high));
      const uint64_t low_index = at[1] + uint64_t(params.extra[3] * int64_t(low));
      const uint64_t high_index = at[1] + uint64_t(params.extra[3] * int64_t(high));
      const BITS a = load_bits(low_value), b = load_bits(high_value);
      const uint i = load32(low_index), j = load32(high_index);
      const ORDER key_a = key_of(a), key_b = key_of(b);
      if (key_b < key_a || (key_b == key_a && j < i)) {
        store_bits(low_value, b);
        store_bits(high_value, a);
        store32(low_index, j);
        store32(high_index, i);
      }
      continue;
    }
    const BITS x = load_bits(at[2] + uint64_t(params.extra[1] * int64_t(own)));
    uint rank = own;
    if (MODE == BACKPLANE_SORT_COUNT) {
      const ORDER key = key_of(x);
      rank = 0u;
      for (uint i = 0u; i < extent; ++i) {
        const ORDER other = key_of(load_bits(at[2] + uint64_t(params.extra[1] * int64_t(i))));
        rank += uint(other < key || (other == key && i < own));
      }
    }
    store_bits(at[0] + uint64_t(params.extra[2] * int64_t(rank)), x);
    store32(at[1] + uint64_t(params.extra[3] * int64_t(rank)), own);
  }
}
