// SPDX-License-Identifier: Apache-2.0
// Rows that a workgroup holds in registers, each thread QUADS times four elements, so that memory is read once and written once.
// Longer rows are cut in parts that are held so: one dispatch for what is known of each part, a second one that reads them again. Its
// team is all of its WIDTH threads; or it has SIDE rows that lie side by side, and neighbouring threads have neighbouring rows. Rows, parts and operands are those of reduction.glsl; who includes this defines OPERANDS.
#define HELD_ROWS
#define WIDTH_OF_GROUP
#include "reduction.glsl"
#include "dtype.glsl"
layout(constant_id = 5) const uint QUADS = 4;

#define FOR_EACH_QUAD(q) [[unroll]] for (uint q = 0u; q < QUADS; ++q)
#define FOR_EACH_OF_FOUR(u) [[unroll]] for (uint u = 0u; u < FOUR; ++u)

#define LANES (WIDTH / SIDE)  // threads of a row

// Where four elements lie behind each other, they are a thread's, and neighbours have the next four; else neighbours have the next
// element, and a thread's four lie LANES apart.
uint quad_first(uint q) { return begin + (params.fours != 0u ? (q * LANES + lane) * FOUR : q * LANES * FOUR + lane); }
uint quad_step() { return params.fours != 0u ? 1u : LANES; }
bvec4 quad_inside(uint q) { return lessThan(uvec4(quad_first(q)) + quad_step() * uvec4(0u, 1u, 2u, 3u), uvec4(end)); }

// Elements of quad `q`, and `otherwise` in place of those behind the end.
vec4 quad_of(uint operand, uint q, float otherwise) {
  const uint first = quad_first(q);
  vec4 out4 = vec4(otherwise);
  if (params.fours != 0u) {
    if (first < end) {
      const BITS4 bits = load_four(four_at(operand, first, BYTES));
      out4 = vec4(value_of(bits.x), value_of(bits.y), value_of(bits.z), value_of(bits.w));
    }
  } else {
    FOR_EACH_OF_FOUR(u) {
      const uint i = first + u * LANES;
      if (i < end) out4[u] = value_of(load_bits(at(operand, i)));
    }
  }
  return out4;
}
void put_quad(uint operand, uint q, vec4 y) {
  const uint first = quad_first(q);
  if (params.fours != 0u) {
    if (first < end) store_four(four_at(operand, first, BYTES), BITS4(bits_of(y.x), bits_of(y.y), bits_of(y.z), bits_of(y.w)));
  } else {
    FOR_EACH_OF_FOUR(u) {
      const uint i = first + u * LANES;
      if (i < end) store_bits(at(operand, i), bits_of(y[u]));
    }
  }
}

// NAME(x): JOIN over the threads of a row, for each of them: in subgroups, then over these, whose numbers are powers of two; where rows
// lie side by side, in shared memory.
#ifdef SUBGROUPS
#define GROUP_SHUFFLES(SHARED, JOIN)                                                                              \
  if (SIDE == 1u && shuffles()) {                                                                                            \
    const uint size = gl_SubgroupSize, count = gl_NumSubgroups, own = gl_SubgroupInvocationID;                    \
    for (uint far = size / 2u; far > 0u; far /= 2u) x = JOIN(x, subgroupShuffleXor(x, far));                      \
    if (own == 0u) SHARED[gl_SubgroupID] = x;                                                                     \
    barrier();                                                                                                    \
    x = SHARED[own % count];                                                                                      \
    for (uint i = own + size; i < count; i += size) x = JOIN(x, SHARED[i]);                                       \
    for (uint far = min(size, count) / 2u; far > 0u; far /= 2u) x = JOIN(x, subgroupShuffleXor(x, far));          \
    barrier();                                                                                                    \
    return x;                                                                                                     \
  }
#else
#define GROUP_SHUFFLES(SHARED, JOIN)
#endif
#define GROUP_REDUCTION(NAME, TYPE, SHARED, JOIN)                                                   \
  shared TYPE SHARED[WIDTH];                                                                        \
  TYPE NAME(TYPE x) {                                                                               \
    GROUP_SHUFFLES(SHARED, JOIN)                                                                    \
    const uint thread = thread_index();                                                             \
    SHARED[thread] = x;                                                                             \
    barrier();                                                                                      \
    for (uint near = LANES / 2u; near > 0u; near /= 2u) {                                           \
      if (lane < near) SHARED[thread] = JOIN(SHARED[thread], SHARED[thread + near * SIDE]);         \
      barrier();                                                                                    \
    }                                                                                               \
    x = SHARED[thread % SIDE];                                                                      \
    barrier();                                                                                      \
    return x;                                                                                       \
  }
vec2 added(vec2 a, vec2 b) { return a + b; }
