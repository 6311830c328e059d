// SPDX-License-Identifier: Apache-2.0
// The k largest elements of each slice, in order. OP 1 selects the smallest elements. Equal
// elements are ordered by position. A workgroup of GROUP_SIZE threads processes a slice. Radix
// selection (Alabi, Blanchard, Gordon and Steinbach 2012) finds the last selected element digit by
// digit, with a histogram per digit. Then the selected elements are gathered, and each is stored at
// its rank.
//
// Operands: values, indices and x. The loops over the operands omit the axis. params.extra: extent,
// k, strides of x, values and indices, whether to store indices.
#version 460
#extension GL_GOOGLE_include_directive : require
#define GROUP_SIZE_CONSTANT
#include "params.glsl"
#include "dtype.glsl"

#if T == T_I64
#define KEY uint64_t
#define KEY_BITS 64u
KEY unsigned_order(BITS x) { return KEY(order_of(x)) ^ 0x8000000000000000ul; }
#else
#define KEY uint
#define KEY_BITS 32u
#if IS_FLOAT || T == T_I8 || T == T_I32
KEY unsigned_order(BITS x) { return KEY(order_of(x)) ^ 0x80000000u; }
#else
KEY unsigned_order(BITS x) { return KEY(order_of(x)); }
#endif
#endif
// The selected elements have the smallest keys.
KEY key_of(BITS x) { return OP == 1 ? unsigned_order(x) : ~unsigned_order(x); }

#define DIGIT_BITS 8u
#define DIGITS (1u << DIGIT_BITS)
shared uint histogram[DIGITS];
shared BITS taken[BACKPLANE_TOPK_MAX];
shared uint positions[BACKPLANE_TOPK_MAX];
shared uint taken_count;

uint extent;
uint64_t base;  // address of the slice in x
BITS x_at(uint i) { return load_bits(base + uint64_t(params.extra[2] * int64_t(i))); }
#define FOR_EACH_OF_SLICE(i) for (uint i = gl_LocalInvocationID.x; i < extent; i += GROUP_SIZE)

// The bound of the selected elements, with the digits that are known so far. The keys of selected
// elements, masked by `key_mask`, are at most `key`. `ties` is the number of elements that match
// the known digits.
struct Bound {
  KEY key, key_mask;
  // The bound of positions. bound_of() determines this bound only if some, but not all, elements with the greatest
  // selected key are selected.
  uint position, position_mask;
  uint ties;
};
bool matches(Bound bound, KEY key, uint i) {
  return (key & bound.key_mask) == bound.key && (i & bound.position_mask) == bound.position;
}
bool is_selected(Bound bound, KEY key, uint i) {
  const KEY upper = key & bound.key_mask;
  return upper < bound.key || (upper == bound.key && (i & bound.position_mask) <= bound.position);
}

Bound bound_of(uint wanted) {
  Bound bound = Bound(KEY(0), KEY(0), 0u, 0u, extent);
  for (uint bits = KEY_BITS + 32u; bits > 0u && bound.ties != wanted; bits -= DIGIT_BITS) {
    const bool by_position = bits <= 32u;
    const uint shift = (by_position ? bits : bits - 32u) - DIGIT_BITS;
    for (uint d = gl_LocalInvocationID.x; d < DIGITS; d += GROUP_SIZE) histogram[d] = 0u;
    barrier();
    FOR_EACH_OF_SLICE(i) {
      const KEY key = key_of(x_at(i));
      const uint digit = (by_position ? i >> shift : uint(key >> shift)) & (DIGITS - 1u);
      if (matches(bound, key, i)) atomicAdd(histogram[digit], 1u);
    }
    barrier();
    // Every thread computes the same digit.
    uint digit = 0u;
    for (; histogram[digit] < wanted; ++digit) wanted -= histogram[digit];
    bound.ties = histogram[digit];
    if (by_position) {
      bound.position |= digit << shift;
      bound.position_mask |= (DIGITS - 1u) << shift;
    } else {
      bound.key |= KEY(digit) << shift;
      bound.key_mask |= KEY(DIGITS - 1u) << shift;
    }
    barrier();
  }
  return bound;
}

void main() {
  extent = uint(params.extra[0]);
  const uint wanted = uint(params.extra[1]);
  for (uint index = gl_WorkGroupID.x; index < params.count; index += gl_NumWorkGroups.x) {
    uint64_t at[3];
    LOCATE(3, at, index);
    base = at[2];
    const Bound bound = bound_of(wanted);
    if (gl_LocalInvocationID.x == 0u) taken_count = 0u;
    barrier();
    FOR_EACH_OF_SLICE(i) {
      const BITS x = x_at(i);
      if (!is_selected(bound, key_of(x), i)) continue;
      const uint slot = atomicAdd(taken_count, 1u);
      taken[slot] = x;
      positions[slot] = i;
    }
    barrier();
    for (uint slot = gl_LocalInvocationID.x; slot < wanted; slot += GROUP_SIZE) {
      const KEY key = key_of(taken[slot]);
      const uint position = positions[slot];
      uint rank = 0u;
      for (uint i = 0u; i < wanted; ++i) {
        const KEY other = key_of(taken[i]);
        rank += uint(other < key || (other == key && positions[i] < position));
      }
      store_bits(at[0] + uint64_t(params.extra[3] * int64_t(rank)), taken[slot]);
      if (params.extra[5] != 0l) store32(at[1] + uint64_t(params.extra[4] * int64_t(rank)), position);
    }
    barrier();
  }
}
