// SPDX-License-Identifier: Apache-2.0
// What kernels over rows share. A row is what one result is reduced from, or what is normalised together: `inner_rank` dimensions,
// of any strides; there is one for each element of the `outer_rank` others. A team of `width` threads, a power of two, works on
// a row, or on a part of one where rows are long and few: then a first dispatch leaves what it found of each part in `partials`, and
// a second one joins them. PACKED 1: rows have one dimension. WIDTH, if not 0: rows of one dimension in one go, four elements of each
// operand at once, by teams of so many threads; a subgroup that holds one needs no barrier. What else there is in a kernel then
// falls away: drivers of CPUs go through both sides of a branch, barriers too. Mirrors reduction.hpp. Who includes it defines OPERANDS.
#include "memory.glsl"
#include "vec4.glsl"
#ifdef HELD_ROWS
layout(constant_id = 6) const uint SIDE = 1;  // rows of a workgroup: more than one lie side by side
#else
layout(constant_id = 4) const uint WIDTH = 0;
#endif

#define PHASE_WHOLE 0u  // rows in one go
#define PHASE_PARTS 1u  // parts, to partials
#define PHASE_JOIN 2u   // from partials

struct RowOperand {
  uint64_t address;  // 0: it is absent
  int64_t strides[BACKPLANE_ROW_RANK];
};
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Rows {
  uint rows, extent;               // how many, and elements of each
  uint parts, chunk;               // of a row, and elements of each
  uint width, phase;
  uint joined;                     // places of a row in partials
  uint first_part, first_element;  // of this dispatch, in all of its rows
  uint fours;                      // of held rows: elements lie so that four are moved at once
  uint outer_rank, inner_rank;
  uint shape[BACKPLANE_ROW_RANK];  // row-major, outer dimensions first
  float numbers[4];                // the kernel's own
  uint64_t partials;               // BACKPLANE_ROW_PARTIAL bytes for each
  RowOperand operands[OPERANDS];
};
layout(push_constant, scalar) uniform Push { Rows params; };

#ifdef SUBGROUPS
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
// Only subgroups that are full are relied on.
bool shuffles() { return gl_NumSubgroups * gl_SubgroupSize == GROUP; }
uint thread_index() {
  return shuffles() ? gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID : gl_LocalInvocationID.x;
}
#else
uint thread_index() { return gl_LocalInvocationID.x; }
#endif

// The row that this thread's team has, or elements begin to end - 1 of it, and the thread's place in the team. A team that has
// none in this round has no elements, and stores nothing: teams go through their rounds together, so that all meet at barriers.
bool live;
uint row, part, begin, end, lane;
uint64_t bases[OPERANDS];  // of element 0 of the row; 0: the operand is absent

bool present(uint operand) { return bases[operand] != 0ul; }

// What elements are found by, read once: memory that is written cannot be told from that of parameters.
uint width;
int64_t steps[OPERANDS];

bool take_round(uint round) {
#ifdef HELD_ROWS
  width = WIDTH / SIDE;
#else
  width = WIDTH != 0u ? WIDTH : params.width;
#endif
  const uint items = params.rows * params.parts, teams = GROUP / width;
  if (round * teams >= items) return false;
  const uint thread = thread_index();
#ifdef HELD_ROWS
  const uint item = round * SIDE + thread % SIDE;
  lane = thread / SIDE;
#else
  const uint item = round * teams + thread / width;
  lane = thread % width;
#endif
  [[unroll]] for (uint k = 0u; k < OPERANDS; ++k) steps[k] = params.operands[k].strides[params.outer_rank];
  live = item < items;
  row = live ? item % params.rows : 0u;
  part = live ? item / params.rows : 0u;
  begin = live ? min(part * params.chunk, params.extent) : 0u;
  end = live ? min(begin + params.chunk, params.extent) : 0u;
  [[unroll]] for (uint k = 0u; k < OPERANDS; ++k) bases[k] = params.operands[k].address;
  uint rest = row;
  for (uint d = params.outer_rank; d-- > 1u;) {
    const uint extent = params.shape[d], quotient = rest / extent;
    const int64_t along = int64_t(rest - quotient * extent);
    rest = quotient;
    [[unroll]] for (uint k = 0u; k < OPERANDS; ++k) bases[k] += uint64_t(params.operands[k].strides[d] * along);
  }
  [[unroll]] for (uint k = 0u; k < OPERANDS; ++k) bases[k] += uint64_t(params.operands[k].strides[0] * int64_t(rest));
  return true;
}
#define FOR_EACH_ROW for (uint round_ = gl_WorkGroupID.x; take_round(round_); round_ += gl_NumWorkGroups.x)

// Where element i of the row lies.
uint64_t at(uint operand, uint i) {
  if (PACKED == 1) return bases[operand] + uint64_t(steps[operand] * int64_t(i));
  const uint outer = params.outer_rank;
  uint64_t address = bases[operand];
  for (uint d = outer + params.inner_rank; d-- > outer + 1u;) {
    const uint extent = params.shape[d], quotient = i / extent;
    address += uint64_t(params.operands[operand].strides[d] * int64_t(i - quotient * extent));
    i = quotient;
  }
  return address + uint64_t(params.operands[operand].strides[outer] * int64_t(i));
}

// The elements that are this thread's.
#define FOR_EACH_ELEMENT(i) for (uint i = begin + lane; i < end; i += width)
// The same, HELD at most, whose values stay in registers; those from `end` on are none.
#define HELD BACKPLANE_ROW_HELD
#define FOR_EACH_HELD(u, i) [[unroll]] for (uint u = 0u, i = begin + lane; u < HELD; ++u, i += width)
bool holds() { return params.chunk <= width * HELD; }

// The first of each four elements that are this thread's, of WIDTH.
#define FOR_EACH_FOUR(i) for (uint i = lane * FOUR; i < end; i += WIDTH * FOUR)
uint64_t four_at(uint operand, uint i, uint bytes) { return bases[operand] + uint64_t(i * bytes); }

// Where a part of this row lies in partials.
uint64_t partial_at(uint which) { return params.partials + uint64_t(row * params.joined + which) * BACKPLANE_ROW_PARTIAL; }
uint64_t own_partial() { return partial_at(params.first_part + part); }
float partial_number(uint which, uint place) { return uintBitsToFloat(load32(partial_at(which) + 4ul * uint64_t(place))); }
void put_partial(uint place, float number) { store32(own_partial() + 4ul * uint64_t(place), floatBitsToUint(number)); }
#define FOR_EACH_PARTIAL(p) for (uint p = lane; p < params.joined; p += width)

// NAME(x): JOIN over the team's threads, for each of them. By shuffles within subgroups, else by a tree in shared memory.
#ifdef SUBGROUPS
#define TEAM_SHUFFLES(TYPE, SHARED, JOIN)                                                          \
  if (WIDTH != 0u && WIDTH <= gl_SubgroupSize && shuffles()) {                                     \
    [[unroll]] for (uint far = WIDTH / 2u; far > 0u; far /= 2u) x = JOIN(x, subgroupShuffleXor(x, far)); \
    return x;                                                                                      \
  }                                                                                                \
  if (shuffles()) {                                                                                \
    const uint inside = min(width, gl_SubgroupSize);                                        \
    for (uint far = inside / 2u; far > 0u; far /= 2u) x = JOIN(x, subgroupShuffleXor(x, far));     \
    if (inside == width) return x;                                                          \
    if (gl_SubgroupInvocationID == 0u) SHARED[gl_SubgroupID] = x;                                  \
    barrier();                                                                                     \
    const uint first = (thread - lane) / gl_SubgroupSize;                                          \
    TYPE all = SHARED[first];                                                                      \
    for (uint i = 1u; i < width / gl_SubgroupSize; ++i) all = JOIN(all, SHARED[first + i]); \
    barrier();                                                                                     \
    return all;                                                                                    \
  }
#else
#define TEAM_SHUFFLES(TYPE, SHARED, JOIN)
#endif
#define TEAM_REDUCTION(NAME, TYPE, SHARED, JOIN)                                         \
  shared TYPE SHARED[GROUP];                                                             \
  TYPE NAME(TYPE x) {                                                                    \
    if (width == 1u) return x;                                                    \
    const uint thread = thread_index();                                                  \
    TEAM_SHUFFLES(TYPE, SHARED, JOIN)                                                    \
    SHARED[thread] = x;                                                                  \
    barrier();                                                                           \
    for (uint near = width / 2u; near > 0u; near /= 2u) {                         \
      if (lane < near) SHARED[thread] = JOIN(SHARED[thread], SHARED[thread + near]);     \
      barrier();                                                                         \
    }                                                                                    \
    const TYPE joined = SHARED[thread - lane];                                           \
    barrier();                                                                           \
    return joined;                                                                       \
  }

float added(float a, float b) { return a + b; }
