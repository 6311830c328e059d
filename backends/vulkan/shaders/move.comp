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

void main() {
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
