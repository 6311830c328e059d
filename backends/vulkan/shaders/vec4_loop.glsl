// SPDX-License-Identifier: Apache-2.0
// Four elements a thread, one load or store for each operand. PACKED 1: operands are packed in one order. PACKED 2: they lie in
// rows whose extent is a multiple of four; input MODE, if not 0, repeats along them. Else each operand is packed along a row, and so
// aligned that four are moved at once, or an immediate, which lies in the parameters four times: no branch asks, for drivers of
// CPUs go through both sides of each.
#include "vec4.glsl"

// Eight threads move 128 bytes of f32 at once, and go on with the next 128: each line of a GPU's cache is read once, and on a CPU,
// whose vectors are eight threads, memory is read in order.
#define EIGHT 8u
#define STRIDE (EIGHT * FOUR)

// The fours of this thread: the next one, where they end, and its place in its row.
struct Fours {
  uint first, end;
  uint column, extent;
  bool wraps;  // on the way to the next one a row ends
};
Fours fours_of_thread() {
  const uint turns = (params.count - 1u) / (gl_NumWorkGroups.x * (GROUP * FOUR)) + 1u;
  const uint part = gl_GlobalInvocationID.x / EIGHT * (STRIDE * turns);
  Fours fours;
  fours.first = part + gl_LocalInvocationID.x % EIGHT * FOUR;
  fours.end = min(params.count & ~(FOUR - 1u), part + STRIDE * turns);
  fours.extent = PACKED == 2 ? params.shape[params.rank - 1u] : 1u;
  fours.column = PACKED == 2 ? fours.first % fours.extent : 0u;
  fours.wraps = false;
  return fours;
}
bool any_left(Fours fours) { return fours.first < fours.end; }
void go_on(inout Fours fours) {
  fours.first += STRIDE;
  if (PACKED == 2) {
    fours.column += STRIDE % fours.extent;
    fours.wraps = fours.column >= fours.extent;
    fours.column -= fours.wraps ? fours.extent : 0u;
  }
}

// An operand's four, and how far it is to the next.
struct Walk {
  uint64_t at, step, wrap;  // wrap: where a row ends between
};
Walk walk_of(uint operand, Fours fours) {
  Walk walk;
  walk.at = params.operands[operand].address;
  if (PACKED == 2) {
    const int64_t element = params.operands[operand].strides[params.rank - 1u];
    const int64_t row = params.rank == 2u ? params.operands[operand].strides[0] : 0l;
    walk.at += uint64_t(row * int64_t(fours.first / fours.extent) + element * int64_t(fours.column));
    walk.step = uint64_t(row * int64_t(STRIDE / fours.extent) + element * int64_t(STRIDE % fours.extent));
    walk.wrap = walk.step + uint64_t(row - element * int64_t(fours.extent));
  } else {
    const int64_t element = params.operands[operand].strides[0];
    walk.at += uint64_t(element * int64_t(fours.first));
    walk.step = uint64_t(element * int64_t(STRIDE));
    walk.wrap = walk.step;
  }
  return walk;
}
void go_on(inout Walk walk, Fours fours) { walk.at += PACKED == 2 && fours.wraps ? walk.wrap : walk.step; }

// What is left of packed operands: an element for each of the first threads.
#define FOR_THE_REST(i)                                                        \
  for (uint i = (params.count & ~(FOUR - 1u)) + gl_GlobalInvocationID.x;       \
       PACKED == 1 && i < params.count; i = params.count)
uint64_t address_of(uint operand, uint i) {
  return params.operands[operand].address + uint64_t(params.operands[operand].strides[0] * int64_t(i));
}
