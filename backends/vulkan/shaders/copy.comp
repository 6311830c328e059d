// SPDX-License-Identifier: Apache-2.0
// Copies, fills, selects or gathers elements of BYTES bytes. OP is BACKPLANE_COPY_*. VARIANT 8
// means that indices have 64 bits.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#if BYTES == 1
#define MOVE(to, from) store8(to, load8(from))
#define CLEAR(to) store8(to, 0u)
#elif BYTES == 2
#define MOVE(to, from) store16(to, load16(from))
#define CLEAR(to) store16(to, 0u)
#elif BYTES == 4
#define MOVE(to, from) store32(to, load32(from))
#define CLEAR(to) store32(to, 0u)
#else
#define MOVE(to, from) store64(to, load64(from))
#define CLEAR(to) store64(to, uint64_t(0))
#endif

#if BYTES == 8
#define BITS4 u64vec4
#define load_bits load64
#define store_bits store64
#define load_vec4 load_vec4_64
#define store_vec4 store_vec4_64
#else
#define BITS4 uvec4
#if BYTES == 4
#define load_bits load32
#define store_bits store32
#define load_vec4 load_vec4_32
#define store_vec4 store_vec4_32
#elif BYTES == 2
#define load_bits load16
#define store_bits store16
#define load_vec4 load_vec4_16
#define store_vec4 store_vec4_16
#else
#define load_bits load8
#define store_bits store8
#define load_vec4 load_vec4_8
#define store_vec4 store_vec4_8
#endif
#endif
#include "vec4_loop.glsl"

// Copies, fills or selects four elements at a time.
void run_vec4() {
  const uint64_t scalar = params.scalar_at[0];
  Vec4Loop loop = begin_vec4_loop();
  Cursor to = cursor_of(0u, loop), condition = cursor_of(1u, loop);
  Cursor a = cursor_of(OP == BACKPLANE_COPY_SELECT ? 2u : 1u, loop), b = cursor_of(3u, loop);
  while (has_next(loop)) {
    BITS4 x = OP == BACKPLANE_COPY_FILL ? BITS4(load_bits(scalar)) : load_vec4(a.at);
    if (OP == BACKPLANE_COPY_SELECT) {
      const uvec4 which = load_vec4_8(condition.at);
      const BITS4 y = load_vec4(b.at);
      x = BITS4(which.x != 0u ? x.x : y.x, which.y != 0u ? x.y : y.y, which.z != 0u ? x.z : y.z,
                which.w != 0u ? x.w : y.w);
    }
    store_vec4(to.at, x);
    advance(loop);
    advance(to, loop);
    advance(condition, loop);
    advance(a, loop);
    advance(b, loop);
  }
  FOR_EACH_REMAINING(i) {
    uint64_t from = scalar;
    if (OP == BACKPLANE_COPY_COPY) from = address_of(1u, i);
    if (OP == BACKPLANE_COPY_SELECT) from = load8(address_of(1u, i)) != 0u ? address_of(2u, i) : address_of(3u, i);
    MOVE(address_of(0u, i), from);
  }
}

void main() {
  if (LAYOUT != BACKPLANE_LAYOUT_STRIDED) {
    run_vec4();
    return;
  }
  FOR_EACH(index) {
    uint64_t at[4];
    if (OP == BACKPLANE_COPY_COPY) {
      LOCATE(2, at, index);
      MOVE(at[0], at[1]);
    } else if (OP == BACKPLANE_COPY_FILL) {
      LOCATE(1, at, index);
      MOVE(at[0], params.scalar_at[0]);
    } else if (OP == BACKPLANE_COPY_SELECT) {  // operands: out, condition, a, b
      LOCATE(4, at, index);
      MOVE(at[0], load8(at[1]) != 0u ? at[2] : at[3]);
    } else {  // operands: out, index, x; params.extra: extent and stride of x along the axis
      LOCATE(3, at, index);
      int64_t which;
      if (load_index(at[1], VARIANT, params.extra[0], which)) {
        MOVE(at[0], at[2] + uint64_t(which * params.extra[1]));
      } else {
        CLEAR(at[0]);
      }
    }
  }
}
