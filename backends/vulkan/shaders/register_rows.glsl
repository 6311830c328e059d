// SPDX-License-Identifier: Apache-2.0
// Rows that a workgroup keeps in registers, so that each element is read once and written once. A thread has VEC4S
// groups of four elements. Rows that do not fit into the registers of a workgroup are split. One dispatch then stores
// partial results of each split, and a second dispatch reads the splits again.
//
// A workgroup has one row, or GROUP_ROWS interleaved rows, with adjacent rows in adjacent threads.
// reduction.glsl explains rows, splits and operands. The including file defines OPERANDS first.
#define REGISTER_ROWS
#define GROUP_SIZE_CONSTANT
#include "reduction.glsl"
#include "dtype.glsl"
layout(constant_id = BACKPLANE_ID_VEC4S) const uint VEC4S = 4;

#define FOR_EACH_OWN_VEC4(q) [[unroll]] for (uint q = 0u; q < VEC4S; ++q)
#define FOR_EACH_COMPONENT(u) [[unroll]] for (uint u = 0u; u < VEC4_SIZE; ++u)

#define THREADS_PER_ROW (GROUP_SIZE / GROUP_ROWS)

// Returns the index of the first element of group `q`. If rows are dense, a thread has four
// contiguous elements, and the next thread has the next four. Otherwise, adjacent threads have
// adjacent elements, and a thread's four elements are THREADS_PER_ROW apart.
uint vec4_first(uint q) {
  return begin + (params.use_vec4 != 0u ? (q * THREADS_PER_ROW + tile_thread) * VEC4_SIZE
                                        : q * THREADS_PER_ROW * VEC4_SIZE + tile_thread);
}
uint vec4_step() { return params.use_vec4 != 0u ? 1u : THREADS_PER_ROW; }
bvec4 vec4_inside(uint q) { return lessThan(uvec4(vec4_first(q)) + vec4_step() * uvec4(0u, 1u, 2u, 3u), uvec4(end)); }

// Loads group `q` of four elements. Elements past the end become `otherwise`.
vec4 load_own_vec4(uint operand, uint q, float otherwise) {
  const uint first = vec4_first(q);
  vec4 out4 = vec4(otherwise);
  if (params.use_vec4 != 0u) {
    if (first < end) {
      const BITS4 bits = load_vec4(vec4_at(operand, first, BYTES));
      out4 = vec4(value_of(bits.x), value_of(bits.y), value_of(bits.z), value_of(bits.w));
    }
  } else {
    FOR_EACH_COMPONENT(u) {
      const uint i = first + u * THREADS_PER_ROW;
      if (i < end) out4[u] = value_of(load_bits(at(operand, i)));
    }
  }
  return out4;
}
void store_own_vec4(uint operand, uint q, vec4 y) {
  const uint first = vec4_first(q);
  if (params.use_vec4 != 0u) {
    if (first < end)
      store_vec4(vec4_at(operand, first, BYTES), BITS4(bits_of(y.x), bits_of(y.y), bits_of(y.z), bits_of(y.w)));
  } else {
    FOR_EACH_COMPONENT(u) {
      const uint i = first + u * THREADS_PER_ROW;
      if (i < end) store_bits(at(operand, i), bits_of(y[u]));
    }
  }
}

// Defines NAME(x), which combines the x of all threads of a row with COMBINE and returns the result
// to each thread. Reduces first within subgroups and then over subgroups. The size and number of
// subgroups are powers of two. Interleaved rows are reduced in shared memory.
#ifdef SUBGROUPS
#define GROUP_SHUFFLES(SHARED, COMBINE)                                                                              \
  if (GROUP_ROWS == 1u && shuffles()) {                                                                                            \
    const uint size = gl_SubgroupSize, count = gl_NumSubgroups, own = gl_SubgroupInvocationID;                    \
    for (uint offset = size / 2u; offset > 0u; offset /= 2u) x = COMBINE(x, subgroupShuffleXor(x, offset));                      \
    if (own == 0u) SHARED[gl_SubgroupID] = x;                                                                     \
    barrier();                                                                                                    \
    x = SHARED[own % count];                                                                                      \
    for (uint i = own + size; i < count; i += size) x = COMBINE(x, SHARED[i]);                                       \
    for (uint offset = min(size, count) / 2u; offset > 0u; offset /= 2u) x = COMBINE(x, subgroupShuffleXor(x, offset));          \
    barrier();                                                                                                    \
    return x;                                                                                                     \
  }
#else
#define GROUP_SHUFFLES(SHARED, COMBINE)
#endif
#define GROUP_REDUCTION(NAME, TYPE, SHARED, COMBINE)                                                   \
  shared TYPE SHARED[GROUP_SIZE];                                                                        \
  TYPE NAME(TYPE x) {                                                                               \
    GROUP_SHUFFLES(SHARED, COMBINE)                                                                    \
    const uint thread = thread_index();                                                             \
    SHARED[thread] = x;                                                                             \
    barrier();                                                                                      \
    for (uint offset = THREADS_PER_ROW / 2u; offset > 0u; offset /= 2u) {                                           \
      if (tile_thread < offset) SHARED[thread] = COMBINE(SHARED[thread], SHARED[thread + offset * GROUP_ROWS]);         \
      barrier();                                                                                    \
    }                                                                                               \
    x = SHARED[thread % GROUP_ROWS];                                                                      \
    barrier();                                                                                      \
    return x;                                                                                       \
  }
vec2 added(vec2 a, vec2 b) { return a + b; }
