// SPDX-License-Identifier: Apache-2.0
// GEMM with cooperative matrices, as gemm.glsl defines it. A subgroup multiplies SM x SK elements
// of `a` by SK x SN elements of `b` at once. T is the dtype of `a` and `b`. Accumulators are f32,
// or i32 for integers. A workgroup computes TILE x TILE outputs from tiles in shared memory. Lines
// of a tile run along the operand's contiguous dimension, so that a thread copies 16 bytes at once
// if strides and alignment allow.
//
// The source uses GL_NV_cooperative_matrix, which every glslc supports. cooperative_matrix.py
// translates the SPIR-V to SPV_KHR_cooperative_matrix.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_NV_cooperative_matrix : require
#extension GL_NV_integer_cooperative_matrix : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#define GROUP BACKPLANE_MATRIX_GROUP
#include "gemm.glsl"

// cooperative_matrix.py recognises `a`, `b` and accumulators by these three constants.
layout(constant_id = BACKPLANE_ID_MATRIX_M) const uint SM = 16;
layout(constant_id = BACKPLANE_ID_MATRIX_N) const uint SN = 16;
layout(constant_id = BACKPLANE_ID_MATRIX_K) const uint SK = 16;
layout(constant_id = BACKPLANE_ID_MATRIX_SUBGROUP_SIZE) const uint SUBGROUP_SIZE = 32;
layout(constant_id = BACKPLANE_ID_SUBGROUPS_M) const uint SUBGROUPS_M = 2;  // subgroups along M
layout(constant_id = BACKPLANE_ID_GROUP_TILE) const uint TILE = 64;         // rows and columns of a workgroup's tile
const uint SUBGROUPS = GROUP / SUBGROUP_SIZE;
const uint SUBGROUP_M = TILE / SUBGROUPS_M, SUBGROUP_N = TILE * SUBGROUPS_M / SUBGROUPS;  // outputs per subgroup
const uint MATRICES_M = SUBGROUP_M / SM, MATRICES_N = SUBGROUP_N / SN;

#if IS_FLOAT
#define MATRIX_A fcoopmatNV<16, gl_ScopeSubgroup, SM, SK>
#define MATRIX_B fcoopmatNV<16, gl_ScopeSubgroup, SK, SN>
#define MATRIX_SUM fcoopmatNV<32, gl_ScopeSubgroup, SM, SN>
#else
#define MATRIX_A icoopmatNV<8, gl_ScopeSubgroup, SM, SK>
#define MATRIX_B icoopmatNV<8, gl_ScopeSubgroup, SK, SN>
#define MATRIX_SUM icoopmatNV<32, gl_ScopeSubgroup, SM, SN>
#endif

#define WORD (4 / BYTES)   // elements per word
#define VECTOR (4 * WORD)  // elements per 16 bytes
#define DEPTH (BACKPLANE_MATRIX_DEPTH_BYTES / BYTES)
// Distances, in words, between adjacent lines of a tile. In a K-major tile, a line holds elements of one row or column.
// In a K-minor tile, a line holds the elements at one k. 16 bytes of padding avoid bank conflicts.
#define K_MAJOR_STRIDE (BACKPLANE_MATRIX_DEPTH_BYTES / 4 + 4)
#define K_MINOR_STRIDE (TILE / WORD + 4)
const uint TILE_WORDS = TILE * K_MAJOR_STRIDE;  // suffices for both layouts if TILE is at least 64
shared uint a_tile[TILE_WORDS];
shared uint b_tile[TILE_WORDS];
shared ACCUMULATOR staging[SUBGROUPS * SM * SN];
#ifdef INTEGER_ACTIVATIONS
shared int line_sums[2 * TILE];  // sums of rows of `a`, then of columns of `b`; zero points multiply the sums

int sum_of_bytes(uint word) {
  int sum = 0;
  [[unroll]] for (int e = 0; e < 4; ++e) sum += int(word << (24 - 8 * e)) >> 24;
  return sum;
}
// Adds the elements of row or column `line` of a tile to `sum`.
#define LINE_SUM(tile, k_major, line, sum)                                                                          \
  do {                                                                                                            \
    if (k_major) {                                                                                                  \
      for (uint w_ = 0; w_ < DEPTH / WORD; ++w_) sum += sum_of_bytes(tile[(line) * K_MAJOR_STRIDE + w_]);            \
    } else {                                                                                                      \
      for (uint k_ = 0; k_ < DEPTH; ++k_)                                                                         \
        sum += int(tile[k_ * K_MINOR_STRIDE + (line) / WORD] << (24u - 8u * ((line) % WORD))) >> 24;                \
    }                                                                                                             \
  } while (false)
#endif

layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Memory128 { uvec4 value; };

// Loads a word of WORD elements. Elements from index `count` on do not exist and are 0.
uint word_at(uint64_t at, int64_t step, int count) {
  uint word = 0u;
  [[unroll]] for (int e = 0; e < WORD; ++e) {
    if (e < count) word |= load_bits(at + uint64_t(step * int64_t(e))) << (e * BYTES * 8);
  }
  return word;
}

// Copies `lines` lines of `run` elements each from address `from` to `tile`. Lines from
// `line_count` on, and elements from `run_count` on, become zero.
#define FILL(tile, line_words, lines, run, from, line_step, run_step, line_count, run_count)                       \
  do {                                                                                                            \
    const bool wide_ = (run_step) == BYTES && (((from) | uint64_t(line_step)) & 15ul) == 0ul;                     \
    for (uint i_ = gl_LocalInvocationIndex; i_ < (lines) * ((run) / VECTOR); i_ += GROUP) {                         \
      const uint line_ = i_ / ((run) / VECTOR), vector_ = i_ % ((run) / VECTOR);                                        \
      const uint64_t at_ = (from) + uint64_t((line_step) * int64_t(line_) + (run_step) * int64_t(vector_ * VECTOR));  \
      const int left_ = int(line_) < (line_count) ? (run_count) - int(vector_ * VECTOR) : 0;                          \
      uvec4 words_;                                                                                               \
      if (wide_ && left_ >= VECTOR) {                                                                               \
        words_ = Memory128(at_).value;                                                                            \
      } else {                                                                                                    \
        [[unroll]] for (int w_ = 0; w_ < 4; ++w_)                                                                 \
          words_[w_] = word_at(at_ + uint64_t((run_step) * int64_t(w_ * WORD)), run_step, left_ - w_ * WORD);     \
      }                                                                                                           \
      [[unroll]] for (uint w_ = 0; w_ < 4; ++w_) tile[line_ * (line_words) + vector_ * 4u + w_] = words_[w_];       \
    }                                                                                                             \
  } while (false)

// Fills the tile of `b` for convolutions and 4-bit weights. A thread copies elements of one column
// along k.
void fill_columns(Column own, int k0, int k_end) {
  const uint line = gl_LocalInvocationIndex % TILE;
  for (uint w = gl_LocalInvocationIndex / TILE; w < DEPTH / WORD; w += GROUP / TILE) {
    uint word = 0u;
    [[unroll]] for (uint e = 0; e < WORD; ++e) {
      const int k = k0 + int(w * WORD + e);
      if (k >= own.first && k < min(own.end, k_end)) {
#ifdef INTEGER_ACTIVATIONS
        word |= value_of_4_bits(load8(byte_of_4_bits(own.at, uint(k))), uint(k)) << (e * 8u);
#else
        word |= load_bits(own.at + uint64_t(gemm.b_depth * int64_t(k))) << (e * BYTES * 8);
#endif
      }
    }
    b_tile[line * K_MAJOR_STRIDE + w] = word;
  }
}

MATRIX_SUM accumulators[MATRICES_M * MATRICES_N];

void multiply_tiles(uint row, uint column, bool a_k_major, bool b_k_major) {
  [[unroll]] for (uint k = 0; k < DEPTH; k += SK) {
    MATRIX_A a[MATRICES_M];
    [[unroll]] for (uint i = 0; i < MATRICES_M; ++i) {
      const uint m = row + i * SM;
      if (a_k_major) coopMatLoadNV(a[i], a_tile, m * K_MAJOR_STRIDE + k / WORD, K_MAJOR_STRIDE, false);
      else coopMatLoadNV(a[i], a_tile, k * K_MINOR_STRIDE + m / WORD, K_MINOR_STRIDE, true);
    }
    [[unroll]] for (uint j = 0; j < MATRICES_N; ++j) {
      const uint n = column + j * SN;
      MATRIX_B b;
      if (b_k_major) coopMatLoadNV(b, b_tile, n * K_MAJOR_STRIDE + k / WORD, K_MAJOR_STRIDE, true);
      else coopMatLoadNV(b, b_tile, k * K_MINOR_STRIDE + n / WORD, K_MINOR_STRIDE, false);
      [[unroll]] for (uint i = 0; i < MATRICES_M; ++i)
        accumulators[i * MATRICES_N + j] = coopMatMulAddNV(a[i], b, accumulators[i * MATRICES_N + j]);
    }
  }
}

#ifdef INTEGER_ACTIVATIONS
#define BY_COLUMN (WEIGHT_BITS == 4)
// Returns the contribution of zero points to the output at `row` and `column` of the tile, which is
// a sum of `count` terms. subtract_zero_points in matmul.comp states the formula.
int zero_point_term(Target target, uint m0, uint n0, uint row, uint column, int count) {
  if ((!ZERO_OF_A && !ZERO_OF_B) || m0 + row >= gemm.rows || n0 + column >= gemm.columns) return 0;
  const int za = zero_of_row(target.matrix, m0 + row), zb = zero_of_column(n0 + column);
  return za * (count * zb - line_sums[TILE + column]) - zb * line_sums[row];
}
#else
#define BY_COLUMN (WINDOW != 0)
#define zero_point_term(target, m0, n0, row, column, count) ACCUMULATOR(0)
#endif

// Stores the subgroup's accumulators, which begin at `row` and `column` of the tile. The tile
// begins at row m0 and column n0.
void store_results(Target target, uint m0, uint n0, uint row, uint column, int count) {
  const uint stage = gl_SubgroupID * (SM * SN);
  [[unroll]] for (uint at = 0; at < MATRICES_M * MATRICES_N; ++at) {
    coopMatStoreNV(accumulators[at], staging, stage, SN, false);
    subgroupBarrier();
    for (uint i = gl_SubgroupInvocationID; i < SM * SN; i += SUBGROUP_SIZE) {
      const uint r = row + at / MATRICES_N * SM + i / SN, c = column + at % MATRICES_N * SN + i % SN;
      const uint m = m0 + r, n = n0 + c;
      const ACCUMULATOR zeros = zero_point_term(target, m0, n0, r, c, count);
      store_result(target, m, n, out_column_at(column_index(n)),
                   load_accumulator(target, m, n) + staging[stage + i] + zeros);
    }
    subgroupBarrier();
  }
}

void main() {
  read_params();
  const uint row = gl_SubgroupID % SUBGROUPS_M * SUBGROUP_M, column = gl_SubgroupID / SUBGROUPS_M * SUBGROUP_N;
  const bool a_k_major = abs(gemm.a_depth) <= abs(gemm.a_row);
  const bool b_k_major = BY_COLUMN || abs(gemm.b_depth) <= abs(gemm.b_column);
  const uint tiles_n = (gemm.columns + TILE - 1u) / TILE;
  const uint tiles = (gemm.rows + TILE - 1u) / TILE * tiles_n;
  const uint items = tiles * gemm.matrices * gemm.splits;
  for (uint item = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; item < items;
       item += gl_NumWorkGroups.x * gl_NumWorkGroups.y) {
    const uint m0 = item % tiles / tiles_n * TILE, n0 = item % tiles_n * TILE;
    const uint matrix = item / tiles % gemm.matrices, slot = item / tiles / gemm.matrices;
    const uint split = gemm.first_split + slot;
    const int k_begin = int(split % gemm.depth_splits * gemm.split_depth);
    const int k_end = int(min(uint(k_begin) + gemm.split_depth, gemm.depth));
    const uint s_begin = split / gemm.depth_splits * gemm.split_segments;
    const uint s_end = min(s_begin + gemm.split_segments, gemm.segments);
    const uint64_t a0 = matrix_at(gemm.a, matrix) + uint64_t(gemm.a_row * int64_t(m0));
    const uint64_t b0 = matrix_at(gemm.b, matrix);
    const uint64_t b_columns = b0 + uint64_t(gemm.b_column * int64_t(gemm.first_column + n0));
    const int rows = int(gemm.rows - m0), columns = int(gemm.columns - n0);
    begin_matrix(matrix);
    const ColumnBase base = column_base_at(b0, column_index(n0 + gl_LocalInvocationIndex % TILE));
    [[unroll]] for (uint i = 0; i < MATRICES_M * MATRICES_N; ++i) accumulators[i] = MATRIX_SUM(ACCUMULATOR(0));
#ifdef INTEGER_ACTIVATIONS
    const uint own_line = gl_LocalInvocationIndex % TILE;
    int line_sum = 0;
#endif
    uvec4 next = first_segment(s_begin);
    for (uint s = s_begin; s < s_end; ++s) {
      const Segment segment = segment_at(next);
      next = next_segment(next);
      if (segment.none) continue;
      const Column own = column_at(base, segment);
      for (int k = k_begin; k < k_end; k += DEPTH) {
        const uint64_t a = a0 + segment.a + uint64_t(gemm.a_depth * int64_t(k));
        if (a_k_major) FILL(a_tile, K_MAJOR_STRIDE, TILE, DEPTH, a, gemm.a_row, gemm.a_depth, rows, k_end - k);
        else FILL(a_tile, K_MINOR_STRIDE, DEPTH, TILE, a, gemm.a_depth, gemm.a_row, k_end - k, rows);
        const uint64_t b = b_columns + uint64_t(gemm.b_depth * int64_t(k));
        if (BY_COLUMN) fill_columns(own, k, k_end);
        else if (b_k_major)
          FILL(b_tile, K_MAJOR_STRIDE, TILE, DEPTH, b, gemm.b_column, gemm.b_depth, columns, k_end - k);
        else FILL(b_tile, K_MINOR_STRIDE, DEPTH, TILE, b, gemm.b_depth, gemm.b_column, k_end - k, columns);
        barrier();
        multiply_tiles(row, column, a_k_major, b_k_major);
#ifdef INTEGER_ACTIVATIONS
        if (ZERO_OF_B && gl_LocalInvocationIndex < TILE) LINE_SUM(a_tile, a_k_major, own_line, line_sum);
        if (ZERO_OF_A && gl_LocalInvocationIndex / TILE == 1u) LINE_SUM(b_tile, b_k_major, own_line, line_sum);
#endif
        barrier();
      }
    }
#ifdef INTEGER_ACTIVATIONS
    if (gl_LocalInvocationIndex < 2u * TILE) line_sums[gl_LocalInvocationIndex] = line_sum;
    barrier();
#endif
    store_results(target_at(matrix, slot), m0, n0, row, column, s_begin < s_end ? k_end - k_begin : 0);
#ifdef INTEGER_ACTIVATIONS
    barrier();  // the next tile overwrites line_sums
#endif
  }
}
