// SPDX-License-Identifier: Apache-2.0
// Stable sort. Operands: values, indices and x, all with stride 0 along the axis, and a counter
// along the axis. The counter has no memory. The index along the axis is the counter's offset plus
// its position. extra: extent; strides of x, values and indices along the axis; distance; whether
// the step is mirrored. `option` is 1 for a descending sort.
#include "nest.h"

typedef SIMT_T::Bits Element;
typedef SIMT_T::Order Order;

struct Slice {
  SIMT_GLOBAL Element* values;
  SIMT_GLOBAL u32* indices;
  i64 x;    // position of element 0 of x
  u32 own;  // index along the axis
};
SIMT_FN Slice slice_of(const NestParams& p, Pointer values, Pointer indices, u32 index) {
  const Position<4> position = locate<4>(p, index);
  Slice out;
  out.values = at_offset<Element>(values, p.offsets[0]) + position.at[0];
  out.indices = at_offset<u32>(indices, p.offsets[1]) + position.at[1];
  out.x = position.at[2];
  out.own = (u32)(p.offsets[3] + (u64)position.at[3]);
  return out;
}
SIMT_FN Order key_of(const NestParams& p, Element x) { return p.option != 0 ? ~SIMT_T::order(x) : SIMT_T::order(x); }

// One thread per element computes the element's rank, which is the number of elements that sort
// before it.
SIMT_KERNEL(sort_count)(Pointer values, Pointer indices, Pointer x, Pointer, NestParams p) {
  const u32 extent = (u32)p.extra[0];
  for (u32 i = global_id(); i < p.count; i += global_size()) {
    const Slice slice = slice_of(p, values, indices, i);
    const Element own = load<Element>(x, p, 2, slice.x + p.extra[1] * slice.own);
    const Order key = key_of(p, own);
    u32 rank = 0;
    for (u32 j = 0; j < extent; ++j) {
      const Order other = key_of(p, load<Element>(x, p, 2, slice.x + p.extra[1] * j));
      rank += (u32)(other < key || (other == key && j < slice.own));
    }
    slice.values[p.extra[2] * rank] = own;
    slice.indices[p.extra[3] * rank] = slice.own;
  }
}

// values = x, indices = 0, 1, 2, ...
SIMT_KERNEL(sort_begin)(Pointer values, Pointer indices, Pointer x, Pointer, NestParams p) {
  for (u32 i = global_id(); i < p.count; i += global_size()) {
    const Slice slice = slice_of(p, values, indices, i);
    slice.values[p.extra[2] * slice.own] = load<Element>(x, p, 2, slice.x + p.extra[1] * slice.own);
    slice.indices[p.extra[3] * slice.own] = slice.own;
  }
}

// One step of a bitonic network (Batcher 1968) on values and indices in place, with one thread per
// pair. The first step of a merge pairs an element with its mirror image in a block of 2 * distance
// elements. Every later step pairs elements that are `distance` apart. The element of a pair that
// sorts first always goes to the lower index. Positions past the end sort last, so the kernel never
// accesses them.
SIMT_KERNEL(sort_step)(Pointer values, Pointer indices, Pointer, Pointer, NestParams p) {
  const u32 extent = (u32)p.extra[0], distance = (u32)p.extra[4];
  for (u32 i = global_id(); i < p.count; i += global_size()) {
    const Slice slice = slice_of(p, values, indices, i);
    const u32 within = slice.own & (distance - 1u), block = (slice.own - within) * 2u;  // distance is a power of two
    const u32 low = block + within;
    const u32 high = p.extra[5] != 0 ? block + 2u * distance - 1u - within : low + distance;
    if (high >= extent) continue;
    const Element a = slice.values[p.extra[2] * low], b = slice.values[p.extra[2] * high];
    const u32 m = slice.indices[p.extra[3] * low], n = slice.indices[p.extra[3] * high];
    const Order key_a = key_of(p, a), key_b = key_of(p, b);
    if (key_b < key_a || (key_b == key_a && n < m)) {
      slice.values[p.extra[2] * low] = b;
      slice.values[p.extra[2] * high] = a;
      slice.indices[p.extra[3] * low] = n;
      slice.indices[p.extra[3] * high] = m;
    }
  }
}
