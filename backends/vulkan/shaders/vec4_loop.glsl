// SPDX-License-Identifier: Apache-2.0
// Four elements a thread, one load or store for each operand. LAYOUT 1: operands are packed in one order. LAYOUT 2: they lie in
// rows whose extent is a multiple of four; input MODE, if not 0, repeats along them. Else each operand is packed along a row, and so
// aligned that four are moved at once, or an immediate, which lies in the parameters four times: no branch asks, for drivers of
// CPUs go through both sides of each.
#include "vec4.glsl"

// Eight threads move 128 bytes of f32 at once, and go on with the next 128: each line of a GPU's cache is read once, and on a CPU,
// whose vectors are eight threads, memory is read in order.
#define NEIGHBOURS 8u
#define STRIDE (NEIGHBOURS * VEC4_SIZE)

// The fours of this thread: the next one, where they end, and its place in its row.
struct Vec4Loop {
  uint first, end;
  uint column, extent;
  bool wraps;  // on the way to the next one a row ends
};
Vec4Loop begin_vec4_loop() {
  const uint rounds = (params.count - 1u) / (gl_NumWorkGroups.x * (GROUP * VEC4_SIZE)) + 1u;
  const uint part = gl_GlobalInvocationID.x / NEIGHBOURS * (STRIDE * rounds);
  Vec4Loop loop;
  loop.first = part + gl_LocalInvocationID.x % NEIGHBOURS * VEC4_SIZE;
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

// An operand's four, and how far it is to the next.
struct Cursor {
  uint64_t at, step, wrap;  // wrap: where a row ends between
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
void advance(inout Cursor cursor, Vec4Loop loop) { cursor.at += LAYOUT == BACKPLANE_LAYOUT_VEC4_ROWS && loop.wraps ? cursor.wrap : cursor.step; }

// What is left of packed operands: an element for each of the first threads.
#define FOR_EACH_REMAINING(i)                                                        \
  for (uint i = (params.count & ~(VEC4_SIZE - 1u)) + gl_GlobalInvocationID.x;       \
       LAYOUT == BACKPLANE_LAYOUT_DENSE && i < params.count; i = params.count)
uint64_t address_of(uint operand, uint i) {
  return params.operands[operand].address + uint64_t(params.operands[operand].strides[0] * int64_t(i));
}
