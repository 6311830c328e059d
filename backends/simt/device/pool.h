// SPDX-License-Identifier: Apache-2.0
// max_pool and avg_pool, with one thread per output.
#include "math.h"
#include "nest.h"

typedef SIMT_T::Bits Element;

// The greatest element of a window, and its index in the plane.
struct Greatest {
  SIMT_T::Order key;
  Element bits;
  i64 found;
};
SIMT_FN void clear(Greatest& window) {
  window.key = (SIMT_T::Order)0x80000000u;  // less than the key of -inf
  window.bits = SIMT_T::of_f32(0xFF800000u);
  window.found = 0;
}
SIMT_FN void take(Greatest& window, Element x, i64 position) {
  const SIMT_T::Order key = SIMT_T::order(x);
  const bool wins = key > window.key;
  window.key = wins ? key : window.key;
  window.bits = wins ? x : window.bits;
  window.found = wins ? position : window.found;
}

// The number of elements of a window, and their compensated sum.
struct Elements {
  Sum sum;
  u32 count;
};
SIMT_FN void clear(Elements& window) {
  window.sum.high = window.sum.low = 0.0f;
  window.count = 0;
}
SIMT_FN void take(Elements& window, Element x, i64) {
  add(window.sum, SIMT_T::value(x));
  ++window.count;
}

// The coordinates in the image at which a window begins. A coordinate in the padding may be negative.
struct Origin {
  i32 at[3];
};
template <class Params>
SIMT_FN Origin origin_of(const Params& p, u32 plane, u32 row, u32 column) {
  Origin out;
  out.at[0] = (i32)plane * p.stride[0] - p.begin[0];
  out.at[1] = (i32)row * p.stride[1] - p.begin[1];
  out.at[2] = (i32)column * p.stride[2] - p.begin[2];
  return out;
}

// Sets `window` from the elements of the window that are in the image. `x` is the first element of the plane.
template <bool contiguous, class Params, class Window>
SIMT_FN void visit(const Params& p, SIMT_GLOBAL const Element* x, const Origin& origin, Window& window) {
  clear(window);
  const bool is_immediate = (p.loops.immediate & 4u) != 0;
  for (i32 s = 0; s < p.window[0]; ++s) {
    const i32 i = origin.at[0] + s * p.dilation[0];
    if ((u32)i >= (u32)p.image[0]) continue;
    for (i32 t = 0; t < p.window[1]; ++t) {
      const i32 j = origin.at[1] + t * p.dilation[1];
      if ((u32)j >= (u32)p.image[1]) continue;
      SIMT_GLOBAL const Element* line = x + (p.strides[0] * i + p.strides[1] * j);
      const i64 first = ((i64)i * p.image[1] + j) * p.image[2];
      for (i32 u = 0; u < p.window[2]; ++u) {
        const i32 k = origin.at[2] + u * p.dilation[2];
        if ((u32)k >= (u32)p.image[2]) continue;
        const Element element = contiguous     ? line[k]
                                : is_immediate ? (Element)p.loops.immediates[2]
                                               : line[p.strides[2] * k];
        take(window, element, first + k);
      }
    }
  }
}

// Stores the result of a window. `at_y` and `at_index` are positions in y and in the indices.
template <class Params>
SIMT_FN void put(const Params& p, Pointer y, Pointer indices, i64 at_y, i64 at_index, const Greatest& window) {
  at_offset<Element>(y, p.loops.offsets[0])[at_y] = window.bits;
  if (p.index_bytes == 4) at_offset<u32>(indices, p.loops.offsets[1])[at_index] = (u32)window.found;
  if (p.index_bytes == 8) at_offset<u64>(indices, p.loops.offsets[1])[at_index] = (u64)window.found;
}
template <class Params>
SIMT_FN void put(const Params& p, Pointer y, Pointer, i64 at_y, i64, const Elements& window) {
  const u32 all = (u32)(p.window[0] * p.window[1] * p.window[2]);
  const u32 count = p.count_padding != 0 ? all : window.count;
  const float mean = divide_f32(total(window.sum), (float)(count != 0u ? count : 1u));
  at_offset<Element>(y, p.loops.offsets[0])[at_y] = SIMT_T::bits(mean);
}

template <class Window, bool contiguous>
SIMT_FN void pool_nest(Pointer y, Pointer indices, Pointer x, const PoolParams<NestParams>& p) {
  for (u32 n = global_id(); n < p.loops.count; n += global_size()) {
    const Position<4> at = locate<4>(p.loops, n);
    const u32 position = (u32)(p.loops.offsets[3] + (u64)at.at[3]), row = position / p.columns, plane = row / p.rows;
    const Origin origin = origin_of(p, plane, row - plane * p.rows, position - row * p.columns);
    Window window;
    visit<contiguous>(p, at_offset<Element>(x, p.loops.offsets[2]) + at.at[2], origin, window);
    put(p, y, indices, at.at[0], at.at[1], window);
  }
}
// Rows of y and of the indices are contiguous. All threads of a group process windows of the same row.
template <class Window, bool contiguous>
SIMT_FN void pool_rows(Pointer y, Pointer indices, Pointer x, const PoolParams<RowParams>& p) {
  for (u32 c = group_id(); c < p.loops.chunks; c += group_count()) {
    const Chunk<4> chunk = chunk_of<4>(p.loops, c);
    const u32 position = (u32)(p.loops.offsets[3] + (u64)chunk.at[3]), row = position / p.columns, plane = row / p.rows;
    SIMT_GLOBAL const Element* from = at_offset<Element>(x, p.loops.offsets[2]) + chunk.at[2];
    for (u32 i = local_id(); i < chunk.count; i += group_size()) {
      const Origin origin = origin_of(p, plane, row - plane * p.rows, position - row * p.columns + i);
      Window window;
      visit<contiguous>(p, from, origin, window);
      put(p, y, indices, chunk.at[0] + i, chunk.at[1] + i, window);
    }
  }
}

#define POOL(name, Window)                                                                             \
  SIMT_KERNEL(name##_nest)(Pointer y, Pointer indices, Pointer x, Pointer, PoolParams<NestParams> p) { \
    if (p.strides[2] == 1) {                                                                           \
      pool_nest<Window, true>(y, indices, x, p);                                                       \
    } else {                                                                                           \
      pool_nest<Window, false>(y, indices, x, p);                                                      \
    }                                                                                                  \
  }                                                                                                    \
  SIMT_KERNEL(name##_rows)(Pointer y, Pointer indices, Pointer x, Pointer, PoolParams<RowParams> p) {  \
    if (p.strides[2] == 1) {                                                                           \
      pool_rows<Window, true>(y, indices, x, p);                                                       \
    } else {                                                                                           \
      pool_rows<Window, false>(y, indices, x, p);                                                      \
    }                                                                                                  \
  }
POOL(max_pool, Greatest)
POOL(avg_pool, Elements)
