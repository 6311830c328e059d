// SPDX-License-Identifier: Apache-2.0
// Like matmul_cooperative.comp, for plain matrices of 16-bit floats that have many rows and columns. A workgroup
// computes TILE_M x TILE_N outputs. While the workgroup multiplies one tile, it loads the next tile to registers. Tiles
// are arrays of 16-byte vectors, so that the driver knows the alignment of the matrices in shared memory.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_NV_cooperative_matrix : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define GROUP BACKPLANE_MATRIX_GROUP
#define PARAMS_IN_PLACE
#include "gemm.glsl"

layout(constant_id = BACKPLANE_ID_MATRIX_M) const uint SM = 16;
layout(constant_id = BACKPLANE_ID_MATRIX_N) const uint SN = 16;
layout(constant_id = BACKPLANE_ID_MATRIX_K) const uint SK = 16;
layout(constant_id = BACKPLANE_ID_MATRIX_SUBGROUP_SIZE) const uint SUBGROUP_SIZE = 32;
layout(constant_id = BACKPLANE_ID_SUBGROUPS_M) const uint SUBGROUPS_M = 2;
layout(constant_id = BACKPLANE_ID_GROUP_TILE) const uint TILE_M = 128;
layout(constant_id = BACKPLANE_ID_GROUP_TILE_N) const uint TILE_N = 256;
const uint SUBGROUPS = GROUP / SUBGROUP_SIZE;
const uint SUBGROUP_M = TILE_M / SUBGROUPS_M, SUBGROUP_N = TILE_N * SUBGROUPS_M / SUBGROUPS;
const uint MATRICES_M = SUBGROUP_M / SM, MATRICES_N = SUBGROUP_N / SN;

#define MATRIX_A fcoopmatNV<16, gl_ScopeSubgroup, SM, SK>
#define MATRIX_B fcoopmatNV<16, gl_ScopeSubgroup, SK, SN>
#define MATRIX_SUM fcoopmatNV<32, gl_ScopeSubgroup, SM, SN>

#define VECTOR 8u  // elements per vector of 16 bytes
#define DEPTH (BACKPLANE_MATRIX_DEPTH_BYTES / BYTES)
// Distances, in vectors, between adjacent lines of a tile. One vector of padding avoids bank conflicts. A_STRIDE and
// B_STRIDE are for K-minor tiles.
const uint K_MAJOR_STRIDE = DEPTH / VECTOR + 1;
const uint A_STRIDE = TILE_M / VECTOR + 1, B_STRIDE = TILE_N / VECTOR + 1;
const uint A_VECTORS = TILE_M * DEPTH / VECTOR / GROUP, B_VECTORS = TILE_N * DEPTH / VECTOR / GROUP;  // per thread
const uint A_TILE = TILE_M * K_MAJOR_STRIDE, B_TILE = TILE_N * K_MAJOR_STRIDE;  // in vectors, for both layouts
shared uvec4 a_tile[A_TILE];
shared uvec4 b_tile[B_TILE];
shared float staging[SUBGROUPS * SM * SN];

layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Memory128 { uvec4 value; };

// Loads eight elements. Elements from index `count` on do not exist and are 0.
uvec4 vector_at(uint64_t at, int64_t step, int count, bool wide) {
  if (wide && count >= int(VECTOR)) return Memory128(at).value;
  uvec4 words = uvec4(0u);
  [[unroll]] for (int e = 0; e < int(VECTOR); ++e) {
    if (e < count) words[e / 2] |= load_bits(at + uint64_t(step * int64_t(e))) << (e % 2 * 16);
  }
  return words;
}

MATRIX_SUM accumulators[MATRICES_M * MATRICES_N];

void multiply_tiles(uint row, uint column, bool a_k_major, bool b_k_major) {
  [[unroll]] for (uint k = 0; k < DEPTH; k += SK) {
    MATRIX_A a[MATRICES_M];
    [[unroll]] for (uint i = 0; i < MATRICES_M; ++i) {
      const uint m = row + i * SM;
      if (a_k_major) coopMatLoadNV(a[i], a_tile, m * K_MAJOR_STRIDE + k / VECTOR, K_MAJOR_STRIDE, false);
      else coopMatLoadNV(a[i], a_tile, k * A_STRIDE + m / VECTOR, A_STRIDE, true);
    }
    [[unroll]] for (uint j = 0; j < MATRICES_N; ++j) {
      const uint n = column + j * SN;
      MATRIX_B b;
      if (b_k_major) coopMatLoadNV(b, b_tile, n * K_MAJOR_STRIDE + k / VECTOR, K_MAJOR_STRIDE, true);
      else coopMatLoadNV(b, b_tile, k * B_STRIDE + n / VECTOR, B_STRIDE, false);
      [[unroll]] for (uint i = 0; i < MATRICES_M; ++i)
        accumulators[i * MATRICES_N + j] = coopMatMulAddNV(a[i], b, accumulators[i * MATRICES_N + j]);
    }
  }
}

// Stores the subgroup's accumulators, which begin at row `row` and column `column`.
void store_results(Target target, uint row, uint column) {
  const uint stage = gl_SubgroupID * (SM * SN);
  const uint64_t first = target.at + uint64_t(int64_t(row) * gemm.out_row) +
                         uint64_t(int64_t(gemm.first_column + column) * gemm.out_column);
  const bool plain = gemm.flags == 0u && OP == 0u && VARIANT != T_F32 && gemm.out_column == 2l && SN % VECTOR == 0u &&
                     row + SUBGROUP_M <= gemm.rows && column + SUBGROUP_N <= gemm.columns &&
                     ((first | uint64_t(gemm.out_row)) & 15ul) == 0ul;
  [[unroll]] for (uint at = 0; at < MATRICES_M * MATRICES_N; ++at) {
    const uint m = at / MATRICES_N * SM, n = at % MATRICES_N * SN;
    coopMatStoreNV(accumulators[at], staging, stage, SN, false);
    subgroupBarrier();
    if (plain) {
      for (uint i = gl_SubgroupInvocationID; i < SM * SN / VECTOR; i += SUBGROUP_SIZE) {
        uvec4 words;
        [[unroll]] for (uint w = 0; w < 4u; ++w) {
          const uint from = stage + i * VECTOR + w * 2u;
          words[w] = bits_of(staging[from]) & 0xFFFFu | bits_of(staging[from + 1u]) << 16;
        }
        const uint r = m + i * VECTOR / SN, c = n + i * VECTOR % SN;
        Memory128(first + uint64_t(int64_t(r) * gemm.out_row) + uint64_t(c * 2u)).value = words;
      }
    } else {
      for (uint i = gl_SubgroupInvocationID; i < SM * SN; i += SUBGROUP_SIZE) {
        const uint r = row + m + i / SN, c = column + n + i % SN;
        store_result(target, r, c, out_column_at(column_index(c)), load_accumulator(target, r, c) + staging[stage + i]);
      }
    }
    subgroupBarrier();
  }
}

void main() {
  read_params();
  const uint lane = gl_LocalInvocationIndex;
  const uint row = gl_SubgroupID % SUBGROUPS_M * SUBGROUP_M, column = gl_SubgroupID / SUBGROUPS_M * SUBGROUP_N;
  const bool a_k_major = abs(gemm.a_depth) <= abs(gemm.a_row);
  const bool b_k_major = abs(gemm.b_depth) <= abs(gemm.b_column);
  // Lines of a tile run along the operand's contiguous dimension. A thread loads the same part of
  // several lines.
  const uint a_parts = (a_k_major ? DEPTH : TILE_M) / VECTOR, b_parts = (b_k_major ? DEPTH : TILE_N) / VECTOR;
  const uint a_line = lane / a_parts, a_part = lane % a_parts, b_line = lane / b_parts, b_part = lane % b_parts;
  const uint a_lines = GROUP / a_parts, b_lines = GROUP / b_parts;  // distance, in lines, between a thread's vectors
  const uint a_put = a_line * (a_k_major ? K_MAJOR_STRIDE : A_STRIDE) + a_part;
  const uint b_put = b_line * (b_k_major ? K_MAJOR_STRIDE : B_STRIDE) + b_part;
  const uint a_put_step = a_lines * (a_k_major ? K_MAJOR_STRIDE : A_STRIDE);
  const uint b_put_step = b_lines * (b_k_major ? K_MAJOR_STRIDE : B_STRIDE);
  const int64_t a_along = a_k_major ? gemm.a_depth : gemm.a_row, a_across = a_k_major ? gemm.a_row : gemm.a_depth;
  const int64_t b_along = b_k_major ? gemm.b_depth : gemm.b_column, b_across = b_k_major ? gemm.b_column : gemm.b_depth;
  const uint64_t a_step = uint64_t(a_across * int64_t(a_lines)), b_step = uint64_t(b_across * int64_t(b_lines));
  const uint64_t a_own = uint64_t(a_across * int64_t(a_line) + a_along * int64_t(a_part * VECTOR));
  const uint64_t b_own = uint64_t(b_across * int64_t(b_line) + b_along * int64_t(b_part * VECTOR));
  const uint64_t a_next_tile = uint64_t(gemm.a_depth * DEPTH), b_next_tile = uint64_t(gemm.b_depth * DEPTH);
  const uint tiles_n = (gemm.columns + TILE_N - 1u) / TILE_N;
  const uint tiles = (gemm.rows + TILE_M - 1u) / TILE_M * tiles_n;
  const uint items = tiles * gemm.matrices * gemm.splits;
  for (uint item = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; item < items;
       item += gl_NumWorkGroups.x * gl_NumWorkGroups.y) {
    const uint m0 = item % tiles / tiles_n * TILE_M, n0 = item % tiles_n * TILE_N;
    const uint matrix = item / tiles % gemm.matrices, slot = item / tiles / gemm.matrices;
    const int k_begin = int((gemm.first_split + slot) * gemm.split_depth);
    const int k_end = int(min(uint(k_begin) + gemm.split_depth, gemm.depth));
    uint64_t a = matrix_at(gemm.a, matrix) + a_own +
                 uint64_t(gemm.a_row * int64_t(m0) + gemm.a_depth * int64_t(k_begin));
    uint64_t b = matrix_at(gemm.b, matrix) + b_own +
                 uint64_t(gemm.b_column * int64_t(gemm.first_column + n0) + gemm.b_depth * int64_t(k_begin));
    const bool a_wide = a_along == BYTES && ((a | uint64_t(a_across)) & 15ul) == 0ul;
    const bool b_wide = b_along == BYTES && ((b | uint64_t(b_across)) & 15ul) == 0ul;
    const int rows = int(gemm.rows - m0), columns = int(gemm.columns - n0);
    const bool whole = a_wide && b_wide && rows >= int(TILE_M) && columns >= int(TILE_N);
    [[unroll]] for (uint i = 0; i < MATRICES_M * MATRICES_N; ++i) accumulators[i] = MATRIX_SUM(0.0);
    uvec4 a_next[A_VECTORS], b_next[B_VECTORS];
    for (int k = k_begin - DEPTH; k < k_end; k += DEPTH) {
      const int left = k_end - k - DEPTH;  // number of elements along k from the beginning of the next tile on
      if (left >= DEPTH && whole) {
        [[unroll]] for (uint u = 0; u < A_VECTORS; ++u) a_next[u] = Memory128(a + a_step * uint64_t(u)).value;
        [[unroll]] for (uint u = 0; u < B_VECTORS; ++u) b_next[u] = Memory128(b + b_step * uint64_t(u)).value;
      } else if (left > 0) {
        [[unroll]] for (uint u = 0; u < A_VECTORS; ++u) {
          const int line = int(a_line + u * a_lines), lines = a_k_major ? rows : left, run = a_k_major ? left : rows;
          a_next[u] = vector_at(a + a_step * uint64_t(u), a_along, line < lines ? run - int(a_part * VECTOR) : 0, a_wide);
        }
        [[unroll]] for (uint u = 0; u < B_VECTORS; ++u) {
          const int line = int(b_line + u * b_lines), lines = b_k_major ? columns : left, run = b_k_major ? left : columns;
          b_next[u] = vector_at(b + b_step * uint64_t(u), b_along, line < lines ? run - int(b_part * VECTOR) : 0, b_wide);
        }
      }
      a += a_next_tile;
      b += b_next_tile;
      if (k >= k_begin) multiply_tiles(row, column, a_k_major, b_k_major);
      barrier();
      if (left > 0) {
        [[unroll]] for (uint u = 0; u < A_VECTORS; ++u) a_tile[a_put + a_put_step * u] = a_next[u];
        [[unroll]] for (uint u = 0; u < B_VECTORS; ++u) b_tile[b_put + b_put_step * u] = b_next[u];
      }
      barrier();
    }
    store_results(target_at(matrix, slot), m0 + row, n0 + column);
  }
}
