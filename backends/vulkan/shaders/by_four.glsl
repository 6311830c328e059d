// SPDX-License-Identifier: Apache-2.0
// Four elements a thread, one load or store for each operand. PACKED 1: operands are packed in one order. PACKED 2: they lie in
// rows whose extent is a multiple of four; input MODE, if not 0, repeats along them. Else each operand is packed along a row, and so
// aligned that four are moved at once, or an immediate, which lies in the parameters four times: no branch asks, for drivers of
// CPUs go through both sides of each.
#define FOUR 4u
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Four8 { uint value; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Four16 { uint64_t value; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Two64 { u64vec2 value; };

// In words of 64 bits where there are such: Mesa's CPU driver takes one at a time, of whatever width, from each thread.
uvec4 load_four8(uint64_t at) {
  const uint packed = Four8(at).value;
  return uvec4(packed & 0xFFu, packed >> 8 & 0xFFu, packed >> 16 & 0xFFu, packed >> 24);
}
uvec4 load_four16(uint64_t at) {
  const uvec2 packed = unpackUint2x32(Four16(at).value);
  return uvec4(packed.x & 0xFFFFu, packed.x >> 16, packed.y & 0xFFFFu, packed.y >> 16);
}
uvec4 load_four32(uint64_t at) {
  const u64vec2 two = Two64(at).value;
  return uvec4(unpackUint2x32(two.x), unpackUint2x32(two.y));
}
u64vec4 load_four64(uint64_t at) { return u64vec4(Two64(at).value, Two64(at + 16ul).value); }

void store_four8(uint64_t at, uvec4 v) {
  Four8(at).value = (v.x & 0xFFu) | (v.y & 0xFFu) << 8 | (v.z & 0xFFu) << 16 | v.w << 24;
}
void store_four16(uint64_t at, uvec4 v) {
  Four16(at).value = packUint2x32(uvec2((v.x & 0xFFFFu) | v.y << 16, (v.z & 0xFFFFu) | v.w << 16));
}
void store_four32(uint64_t at, uvec4 v) { Two64(at).value = u64vec2(packUint2x32(v.xy), packUint2x32(v.zw)); }
void store_four64(uint64_t at, u64vec4 v) {
  Two64(at).value = v.xy;
  Two64(at + 16ul).value = v.zw;
}

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
