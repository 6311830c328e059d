// SPDX-License-Identifier: Apache-2.0
// A loop over elements, four at a time, with one load or store per operand. With
// BACKPLANE_LAYOUT_DENSE, operands are dense or immediates. With BACKPLANE_LAYOUT_VEC4_ROWS,
// operands consist of rows whose extent is a multiple of four. If MODE is not 0, operand MODE,
// which is an input, is broadcast along rows. Every other operand is an immediate, or is dense
// along rows and aligned for accesses of four elements.
//
// The parameters contain each immediate four times, so that kernels load immediates like other
// operands, without a branch. CPU drivers would execute both sides of such a branch.
#include "vec4.glsl"

// Eight adjacent threads access 128 bytes of f32 at once, and then the next 128 bytes. A GPU thus
// reads each cache line once. A CPU, whose vectors hold eight threads, reads memory in order.
#define COALESCED 8u
#define STRIDE (COALESCED * VEC4_SIZE)

// The state of a thread's loop: its next four elements, its end, and its column in a row.
struct Vec4Loop {
  uint first, end;
  uint column, extent;
  bool wraps;  // the last step crossed the end of a row
};
Vec4Loop begin_vec4_loop() {
  const uint rounds = (params.count - 1u) / (gl_NumWorkGroups.x * (GROUP * VEC4_SIZE)) + 1u;
  const uint part = gl_GlobalInvocationID.x / COALESCED * (STRIDE * rounds);
  Vec4Loop loop;
  loop.first = part + gl_LocalInvocationID.x % COALESCED * VEC4_SIZE;
  loop.end = min(params.count & ~(VEC4_SIZE - 1u), part + STRIDE * rounds);
  loop.extent = LAYOUT == BACKPLANE_LAYOUT_VEC4_ROWS ? params.shape[params.rank - 1u] : 1u;
  loop.column = LAYOUT == BACKPLANE_LAYOUT_VEC4_ROWS ? loop.first % loop.extent : 0u;
  loop.wraps = false;
  return loop;
}
bool has_next(Vec4Loop loop) { return loop.first < loop.end; }
void advance(inout Vec4Loop loop) {
  loop.first += STRIDE;
  if (LAYOUT == BACKPLANE_LAYOUT_VEC4_ROWS) {
    loop.column += STRIDE % loop.extent;
    loop.wraps = loop.column >= loop.extent;
    loop.column -= loop.wraps ? loop.extent : 0u;
  }
}

// The address of four elements of an operand, and the step to the next four.
struct Cursor {
  uint64_t at, step, wrap;  // wrap: the step across the end of a row
};
Cursor cursor_of(uint operand, Vec4Loop loop) {
  Cursor cursor;
  cursor.at = params.operands[operand].address;
  if (LAYOUT == BACKPLANE_LAYOUT_VEC4_ROWS) {
    const int64_t element = params.operands[operand].strides[params.rank - 1u];
    const int64_t row = params.rank == 2u ? params.operands[operand].strides[0] : 0l;
    cursor.at += uint64_t(row * int64_t(loop.first / loop.extent) + element * int64_t(loop.column));
    cursor.step = uint64_t(row * int64_t(STRIDE / loop.extent) + element * int64_t(STRIDE % loop.extent));
    cursor.wrap = cursor.step + uint64_t(row - element * int64_t(loop.extent));
  } else {
    const int64_t element = params.operands[operand].strides[0];
    cursor.at += uint64_t(element * int64_t(loop.first));
    cursor.step = uint64_t(element * int64_t(STRIDE));
    cursor.wrap = cursor.step;
  }
  return cursor;
}
void advance(inout Cursor cursor, Vec4Loop loop) {
  cursor.at += LAYOUT == BACKPLANE_LAYOUT_VEC4_ROWS && loop.wraps ? cursor.wrap : cursor.step;
}

// Loops over the elements that remain after a vec4 loop over dense operands. At most three elements
// remain, and each has its own thread.
#define FOR_EACH_REMAINING(i)                                                        \
  for (uint i = (params.count & ~(VEC4_SIZE - 1u)) + gl_GlobalInvocationID.x;       \
       LAYOUT == BACKPLANE_LAYOUT_DENSE && i < params.count; i = params.count)
uint64_t address_of(uint operand, uint i) {
  return params.operands[operand].address + uint64_t(params.operands[operand].strides[0] * int64_t(i));
}
