// SPDX-License-Identifier: Apache-2.0
// What only moves elements of BYTES bytes: OP 0 copy, 1 fill with scalar 0, 2 select, 3 gather (VARIANT 8: 64-bit indices).
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
#define load_four load_four64
#define store_four store_four64
#else
#define BITS4 uvec4
#if BYTES == 4
#define load_bits load32
#define store_bits store32
#define load_four load_four32
#define store_four store_four32
#elif BYTES == 2
#define load_bits load16
#define store_bits store16
#define load_four load_four16
#define store_four store_four16
#else
#define load_bits load8
#define store_bits store8
#define load_four load_four8
#define store_four store_four8
#endif
#endif
#include "packed.glsl"

// Copy, fill and select of packed operands.
void move_packed() {
  const uint64_t to = params.operands[0].address;
  const uint count = params.count;
  if (OP == 1) {
    const BITS4 value = BITS4(load_bits(params.scalar_at[0]));
    const bool aligned = IS_ALIGNED(to, BYTES);
    FOR_EACH_FOUR(first, count) {
      if (aligned && count - first >= FOUR) {
        store_four(to + uint64_t(first) * BYTES, value);
      } else {
        for (uint i = first; i < min(count, first + FOUR); ++i) store_bits(to + uint64_t(i) * BYTES, value.x);
      }
    }
    return;
  }
  const Packed a = packed_operand(OP == 2 ? 2 : 1), b = packed_operand(OP == 2 ? 3 : 1), condition = packed_operand(1);
  bool aligned = IS_ALIGNED(to, BYTES) && a.aligned && b.aligned;
  if (OP == 2) aligned = aligned && condition.step == 1u && IS_ALIGNED(condition.address, 1);
  FOR_EACH_FOUR(first, count) {
    if (aligned && count - first >= FOUR) {
      BITS4 x = take_four(a, first);
      if (OP == 2) {
        const uvec4 which = load_four8(condition.address + first);
        const BITS4 y = take_four(b, first);
        x = BITS4(which.x != 0u ? x.x : y.x, which.y != 0u ? x.y : y.y, which.z != 0u ? x.z : y.z, which.w != 0u ? x.w : y.w);
      }
      store_four(to + uint64_t(first) * BYTES, x);
    } else {
      for (uint i = first; i < min(count, first + FOUR); ++i) {
        const bool other = OP == 2 && load8(place_of(condition, i)) == 0u;
        MOVE(to + uint64_t(i) * BYTES, other ? place_of(b, i) : place_of(a, i));
      }
    }
  }
}

void main() {
  if (PACKED == 1 && OP != 3) {
    move_packed();
    return;
  }
  FOR_EACH(index) {
    uint64_t at[4];
    if (OP == 0) {
      LOCATE(2, at, index);
      MOVE(at[0], at[1]);
    } else if (OP == 1) {
      LOCATE(1, at, index);
      MOVE(at[0], params.scalar_at[0]);
    } else if (OP == 2) {  // out, condition, a, b
      LOCATE(4, at, index);
      MOVE(at[0], load8(at[1]) != 0u ? at[2] : at[3]);
    } else {  // out, index, x; extra: extent and stride of x along the axis
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
