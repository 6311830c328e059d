// SPDX-License-Identifier: Apache-2.0
// Definitions that reduction kernels share. A row is a set of elements that are reduced to one
// result, or that are normalised together. A row has `inner_rank` dimensions with any strides.
// There is one row for each index of the other `outer_rank` dimensions.
//
// A tile of `tile_size` threads, a power of two, processes a row. If there are few long rows, they
// are split. A first dispatch then stores each split's results in `partials`, and a second dispatch
// combines these results.
//
// With LAYOUT dense, rows have one dimension. If VEC4_TILE is not 0, rows have one dimension and
// are not split. Tiles of VEC4_TILE threads then read four elements of each operand at once. A tile
// within one subgroup needs no barrier. VEC4_TILE is a constant, so that the compiler removes all
// other code. CPU drivers would otherwise execute both sides of a branch, including barriers.
//
// ReductionParams has the fields of the struct in ops/reduction.hpp, except `immediates`, which
// kernels read by address. The including file defines OPERANDS first.
#include "memory.glsl"
#include "vec4.glsl"
#ifdef REGISTER_ROWS
// Number of rows per workgroup. If greater than 1, the rows are interleaved in memory.
layout(constant_id = BACKPLANE_ID_GROUP_ROWS) const uint GROUP_ROWS = 1;
#else
layout(constant_id = BACKPLANE_ID_VEC4_TILE) const uint VEC4_TILE = 0;
#endif

#define PHASE_WHOLE 0u     // processes whole rows
#define PHASE_PARTIALS 1u  // processes splits and writes partials
#define PHASE_COMBINE 2u   // combines partials

struct ReductionOperand {
  uint64_t address;  // 0 if the operand is absent
  int64_t strides[BACKPLANE_REDUCTION_RANK];
};
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer ReductionParams {
  uint rows, extent;          // number of rows; number of elements per row
  uint splits, split_length;  // number of splits per row; number of elements per split
  uint tile_size, phase;
  uint row_splits;                  // number of splits per row, over all dispatches
  uint first_split, first_element;  // the dispatch's first split and element within each row
  uint use_vec4;                    // whether rows are dense and vec4-aligned, for register_rows.glsl
  uint outer_rank, inner_rank;
  uint shape[BACKPLANE_REDUCTION_RANK];  // extents in row-major order, outer dimensions first
  float numbers[4];                      // numbers whose meaning each kernel defines
  uint64_t partials;                     // address of the partial results, BACKPLANE_PARTIAL_BYTES per split
  ReductionOperand operands[OPERANDS];
};
layout(push_constant, scalar) uniform Push { ReductionParams params; };

#ifdef SUBGROUPS
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
// Returns whether all subgroups are full, so that shuffles can be used.
bool shuffles() { return gl_NumSubgroups * gl_SubgroupSize == GROUP; }
uint thread_index() {
  return shuffles() ? gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID : gl_LocalInvocationID.x;
}
#else
uint thread_index() { return gl_LocalInvocationID.x; }
#endif

// The current row or split of this thread's tile has the elements `begin` to `end` - 1. `tile_thread` is the thread's
// index in the tile. All tiles take part in every round (iteration of FOR_EACH_ROW), so that all threads reach every
// barrier. A tile without a row in a round has no elements and stores nothing.
bool has_row;
uint row, split, begin, end, tile_thread;
uint64_t bases[OPERANDS];  // address of element 0 of the row; 0 if the operand is absent

bool present(uint operand) { return bases[operand] != 0ul; }

// Copies of parameters. Without the copies, the compiler would read the parameters again after each
// store, because a store might change the parameters.
uint tile_size;
int64_t steps[OPERANDS];

bool assign_row(uint round) {
#ifdef REGISTER_ROWS
  tile_size = GROUP_SIZE / GROUP_ROWS;
#else
  tile_size = VEC4_TILE != 0u ? VEC4_TILE : params.tile_size;
#endif
  const uint items = params.rows * params.splits, tiles = GROUP / tile_size;
  if (round * tiles >= items) return false;
  const uint thread = thread_index();
#ifdef REGISTER_ROWS
  const uint item = round * GROUP_ROWS + thread % GROUP_ROWS;
  tile_thread = thread / GROUP_ROWS;
#else
  const uint item = round * tiles + thread / tile_size;
  tile_thread = thread % tile_size;
#endif
  [[unroll]] for (uint k = 0u; k < OPERANDS; ++k) steps[k] = params.operands[k].strides[params.outer_rank];
  has_row = item < items;
  row = has_row ? item % params.rows : 0u;
  split = has_row ? item / params.rows : 0u;
  begin = has_row ? min(split * params.split_length, params.extent) : 0u;
  end = has_row ? min(begin + params.split_length, params.extent) : 0u;
  [[unroll]] for (uint k = 0u; k < OPERANDS; ++k) bases[k] = params.operands[k].address;
  uint remaining = row;
  for (uint d = params.outer_rank; d-- > 1u;) {
    const uint extent = params.shape[d], quotient = remaining / extent;
    const int64_t coordinate = int64_t(remaining - quotient * extent);
    remaining = quotient;
    [[unroll]] for (uint k = 0u; k < OPERANDS; ++k) bases[k] += uint64_t(params.operands[k].strides[d] * coordinate);
  }
  [[unroll]] for (uint k = 0u; k < OPERANDS; ++k) bases[k] += uint64_t(params.operands[k].strides[0] * int64_t(remaining));
  return true;
}
#define FOR_EACH_ROW for (uint round_ = gl_WorkGroupID.x; assign_row(round_); round_ += gl_NumWorkGroups.x)

// Returns the address of element i of the row.
uint64_t at(uint operand, uint i) {
  if (LAYOUT == BACKPLANE_LAYOUT_DENSE) return bases[operand] + uint64_t(steps[operand] * int64_t(i));
  const uint outer = params.outer_rank;
  uint64_t address = bases[operand];
  for (uint d = outer + params.inner_rank; d-- > outer + 1u;) {
    const uint extent = params.shape[d], quotient = i / extent;
    address += uint64_t(params.operands[operand].strides[d] * int64_t(i - quotient * extent));
    i = quotient;
  }
  return address + uint64_t(params.operands[operand].strides[outer] * int64_t(i));
}

// Loops over the elements of this thread.
#define FOR_EACH_ELEMENT(i) for (uint i = begin + tile_thread; i < end; i += tile_size)
// Like FOR_EACH_ELEMENT, but unrolled for at most REGISTERS elements per thread, so that the
// elements stay in registers. The body must skip elements from `end` on, which do not exist.
#define REGISTERS BACKPLANE_REDUCTION_REGISTERS
#define FOR_EACH_REGISTER(u, i) [[unroll]] for (uint u = 0u, i = begin + tile_thread; u < REGISTERS; ++u, i += tile_size)
bool fits_registers() { return params.split_length <= tile_size * REGISTERS; }

// Loops over this thread's groups of four elements in a tile of VEC4_TILE threads. `i` is the first
// element of a group.
#define FOR_EACH_VEC4(i) for (uint i = tile_thread * VEC4_SIZE; i < end; i += VEC4_TILE * VEC4_SIZE)
uint64_t vec4_at(uint operand, uint i, uint bytes) { return bases[operand] + uint64_t(i * bytes); }

// Returns the address of the partial results of split `which` of the current row.
uint64_t partial_at(uint which) {
  return params.partials + uint64_t(row * params.row_splits + which) * BACKPLANE_PARTIAL_BYTES;
}
uint64_t own_partial() { return partial_at(params.first_split + split); }
float partial_value(uint which, uint index) {
  return uintBitsToFloat(load32(partial_at(which) + 4ul * uint64_t(index)));
}
void store_partial(uint index, float number) {
  store32(own_partial() + 4ul * uint64_t(index), floatBitsToUint(number));
}
#define FOR_EACH_PARTIAL(p) for (uint p = tile_thread; p < params.row_splits; p += tile_size)

// Defines NAME(x), which combines the x of all threads of a tile with COMBINE and returns the
// result to each thread. Uses shuffles within subgroups, and shared memory between subgroups.
// Without shuffles, uses only shared memory.
#ifdef SUBGROUPS
#define TILE_SHUFFLES(TYPE, SHARED, COMBINE)                                                          \
  if (VEC4_TILE != 0u && VEC4_TILE <= gl_SubgroupSize && shuffles()) {                                     \
    [[unroll]] for (uint offset = VEC4_TILE / 2u; offset > 0u; offset /= 2u) x = COMBINE(x, subgroupShuffleXor(x, offset)); \
    return x;                                                                                      \
  }                                                                                                \
  if (shuffles()) {                                                                                \
    const uint inside = min(tile_size, gl_SubgroupSize);                                        \
    for (uint offset = inside / 2u; offset > 0u; offset /= 2u) x = COMBINE(x, subgroupShuffleXor(x, offset));     \
    if (inside == tile_size) return x;                                                          \
    if (gl_SubgroupInvocationID == 0u) SHARED[gl_SubgroupID] = x;                                  \
    barrier();                                                                                     \
    const uint first = (thread - tile_thread) / gl_SubgroupSize;                                          \
    TYPE all = SHARED[first];                                                                      \
    for (uint i = 1u; i < tile_size / gl_SubgroupSize; ++i) all = COMBINE(all, SHARED[first + i]); \
    barrier();                                                                                     \
    return all;                                                                                    \
  }
#else
#define TILE_SHUFFLES(TYPE, SHARED, COMBINE)
#endif
#define TILE_REDUCTION(NAME, TYPE, SHARED, COMBINE)                                         \
  shared TYPE SHARED[GROUP];                                                             \
  TYPE NAME(TYPE x) {                                                                    \
    if (tile_size == 1u) return x;                                                    \
    const uint thread = thread_index();                                                  \
    TILE_SHUFFLES(TYPE, SHARED, COMBINE)                                                    \
    SHARED[thread] = x;                                                                  \
    barrier();                                                                           \
    for (uint offset = tile_size / 2u; offset > 0u; offset /= 2u) {                         \
      if (tile_thread < offset) SHARED[thread] = COMBINE(SHARED[thread], SHARED[thread + offset]);     \
      barrier();                                                                         \
    }                                                                                    \
    const TYPE result = SHARED[thread - tile_thread];                                           \
    barrier();                                                                           \
    return result;                                                                       \
  }

float added(float a, float b) { return a + b; }
