// SPDX-License-Identifier: Apache-2.0
// GEMM for matmul and convolutions, as gemm.glsl defines it. T is the dtype of `a`. `b` has the
// same dtype, or i8 if `a` has an integer dtype. A thread computes TM x TN outputs. Values of
// ALGORITHM:
// direct: a thread reads all elements that it multiplies.
// shared: a workgroup's tiles pass through shared memory.
// subgroup: the threads of a subgroup share TM rows. Each thread reads elements of `a` at a
// different k and broadcasts them. With BACKPLANE_MODE_VEC4_COLUMNS, a thread reads its TN columns
// at once. These columns are contiguous in `b` and aligned, and TN divides the number of columns.
// skinny: like direct, for at most TM rows.
//
// WIDE is like `shared` for floats, with more outputs per thread. While a workgroup multiplies one
// tile, it loads the next tile to registers.
//
// With QUANTIZED, `b` holds weights of 4 or 8 bits. DOT is like `shared` for 8-bit integers. A word
// then holds the elements at four values of k, which one instruction multiplies.
#version 460
#extension GL_GOOGLE_include_directive : require
#ifdef SUBGROUP
#extension GL_KHR_shader_subgroup_ballot : require
#define ALGORITHM BACKPLANE_ALGORITHM_SUBGROUP
#define GROUP BACKPLANE_SUBGROUP_WORKGROUP
#elif defined(DOT)
#extension GL_EXT_spirv_intrinsics : require
#define ALGORITHM BACKPLANE_ALGORITHM_SHARED
#elif defined(WIDE)
#define ALGORITHM BACKPLANE_ALGORITHM_SHARED
#else
#define ALGORITHM MODE
#endif
#include "gemm.glsl"
#include "vec4.glsl"

#define TM BACKPLANE_THREAD_TILE_M
// DEPTH is the number of elements along k of a tile in shared memory.
#ifdef WIDE
#define TN (2 * BACKPLANE_THREAD_TILE_N)
#define DEPTH 8
#define TILE_ROWS BACKPLANE_WIDE_TILE_M
#define TILE_COLUMNS BACKPLANE_WIDE_TILE_N
#else
#define TN BACKPLANE_THREAD_TILE_N
#define DEPTH 16
#define TILE_ROWS BACKPLANE_GROUP_TILE_M
#define TILE_COLUMNS BACKPLANE_GROUP_TILE_N
#endif
#define CHUNK BACKPLANE_MIN_SUBGROUP  // number of values of k that a subgroup reads at once
#define ROWS (ALGORITHM == BACKPLANE_ALGORITHM_SKINNY ? TM : TILE_ROWS)
#define COLUMNS (ALGORITHM == BACKPLANE_ALGORITHM_SKINNY ? BACKPLANE_SKINNY_TILE_N : TILE_COLUMNS)
#define THREADS_N (COLUMNS / TN)
#define VEC4_COLUMNS (ALGORITHM == BACKPLANE_ALGORITHM_SUBGROUP && IS_FLOAT && MODE == BACKPLANE_MODE_VEC4_COLUMNS)

#if IS_FLOAT
#define b_value(at) value_of(load_bits(at))
#else
#define b_value(at) (int(load8(at) << 24) >> 24)
#endif
#define a_value(at) ACCUMULATOR(value_of(load_bits(at)))

// TILED is the type of a tile's element. An element holds WORD values of a row or column, at
// consecutive k.
#ifdef DOT
#define WORD 4
#define TILED uint
// dot4 is OpSDotKHR or, for u8 by i8, OpSUDotKHR, whose first factor is signed.
#define DOT_REQUIRES extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018]
#if T == T_U8
spirv_instruction(DOT_REQUIRES, id = 4452) int dot4(uint b, uint a, spirv_literal int format);
#else
spirv_instruction(DOT_REQUIRES, id = 4450) int dot4(uint b, uint a, spirv_literal int format);
#endif
#define product_of(a, b) dot4(b, a, 0)  // 0 is PackedVectorFormat4x8Bit
#define ONES 0x01010101u
#else
#define WORD 1
#define TILED ACCUMULATOR
#define product_of(a, b) ((a) * (b))
#define ONES ACCUMULATOR(1)
#endif
#ifdef WIDE
// Two tiles of each operand. A vec4 holds four rows of `a` or four columns of `b` at one k. Each k
// has a vec4 of padding.
shared vec4 a_tile[2][DEPTH][ROWS / 4 + 1];
shared vec4 b_tile[2][DEPTH][COLUMNS / 4 + 1];
#else
// Each k has two words of padding. The padding avoids conflicts among 32 banks for accesses at one
// k and for accesses along k.
shared TILED
    a_tile[ALGORITHM == BACKPLANE_ALGORITHM_SHARED ? DEPTH : 1][ALGORITHM == BACKPLANE_ALGORITHM_SHARED ? ROWS + 2 : 1];
shared TILED b_tile[ALGORITHM == BACKPLANE_ALGORITHM_SHARED ? DEPTH : 1]
                   [ALGORITHM == BACKPLANE_ALGORITHM_SHARED ? COLUMNS + 2 : 1];
#endif

ACCUMULATOR accumulators[TM][TN];
#ifdef INTEGER_ACTIVATIONS
// Sums of the rows of `a` and of the columns of `b`. Each sum is multiplied by the zero point of
// the other operand.
ACCUMULATOR row_sums[TM], column_sums[TN];
#endif

// Returns the element of `column` of `b` at index k. column.at is the element's address. If the
// element does not exist, reads `safe` and returns 0.
ACCUMULATOR b_of(Column column, uint64_t safe, int k) {
#ifdef FLOAT_ACTIVATIONS
  return weight_at(column, k);
#endif
#ifdef INTEGER_ACTIVATIONS
  if (WEIGHT_BITS == 4) return ACCUMULATOR(value_of_4_bits(load8(byte_of_4_bits(column.at, uint(k))), uint(k)));
#endif
  if (WINDOW == 0) return ACCUMULATOR(b_value(column.at));
  const bool inside = k >= column.first && k < column.end;
  const ACCUMULATOR value = ACCUMULATOR(b_value(inside ? column.at : safe));
  return inside ? value : ACCUMULATOR(0);
}

void multiply(TILED a[TM], TILED b[TN]) {
  [[unroll]] for (uint i = 0; i < TM; ++i)
    [[unroll]] for (uint j = 0; j < TN; ++j) accumulators[i][j] += product_of(a[i], b[j]);
#ifdef INTEGER_ACTIVATIONS
  [[unroll]] for (uint i = 0; i < TM; ++i) if (ZERO_OF_B) row_sums[i] += product_of(a[i], ONES);
  [[unroll]] for (uint j = 0; j < TN; ++j) if (ZERO_OF_A) column_sums[j] += product_of(ONES, b[j]);
#endif
}

#ifdef INTEGER_ACTIVATIONS
// The sum of (a - za)(b - zb) is sum(ab) - za sum(b) - zb sum(a) + count za zb, modulo 2^32.
void subtract_zero_points(uint matrix, uint row, uint column, uint column_step, int count) {
  int zero[TN];
  [[unroll]] for (uint j = 0; j < TN; ++j) zero[j] = zero_of_column(min(column + j * column_step, gemm.columns - 1u));
  [[unroll]] for (uint i = 0; i < TM; ++i) {
    const int of_row = zero_of_row(matrix, min(row + i, gemm.rows - 1u));
    [[unroll]] for (uint j = 0; j < TN; ++j)
      accumulators[i][j] += of_row * (count * zero[j] - column_sums[j]) - zero[j] * row_sums[i];
  }
}
#endif

#ifdef DOT
// Loads a word of four bytes. Bytes from index `count` on do not exist and are 0.
uint word_at(uint64_t at, int64_t step, int count) {
  if (step == 1l && (uint(at) & 3u) == 0u && count >= WORD) return load32(at);
  uint word = 0u;
  [[unroll]] for (int e = 0; e < WORD; ++e) {
    if (e < count) word |= load8(at + uint64_t(step * int64_t(e))) << (8 * e);
  }
  return word;
}
#define a_word(at, count) word_at(at, gemm.a_depth, count)
#ifdef QUANTIZED
uint word_of_4_bits(uint64_t column, uint k, int count) {
  uint word = 0u;
  [[unroll]] for (uint e = 0; e < WORD; ++e) {
    if (int(e) < count) word |= value_of_4_bits(load8(byte_of_4_bits(column, k + e)), k + e) << (8u * e);
  }
  return word;
}
#define b_word(column, safe, k, count) \
  (WEIGHT_BITS == 4 ? word_of_4_bits((column).at, uint(k), count) : word_at((column).at, gemm.b_depth, count))
#else
#define b_word(column, safe, k, count) word_at((column).at, gemm.b_depth, count)
#endif
#else
#define a_word(at, count) a_value(at)
#define b_word(column, safe, k, count) b_of(column, safe, k)
#endif

#if WORD == 1
// Multiplies the elements at one k without broadcasts. Advances rows and columns to the next k.
void step(inout uint64_t rows[TM], inout Column columns[TN], uint64_t safe, int k) {
  ACCUMULATOR a[TM], b[TN];
  [[unroll]] for (uint i = 0; i < TM; ++i) {
    a[i] = a_value(rows[i]);
    rows[i] += uint64_t(gemm.a_depth);
  }
  [[unroll]] for (uint j = 0; j < TN; ++j) {
    b[j] = b_of(columns[j], safe, k);
    columns[j].at += uint64_t(gemm.b_depth);
  }
  multiply(a, b);
}

#endif

#ifdef SUBGROUP
void read_columns(inout Column columns[TN], uint64_t safe, int k, out ACCUMULATOR b[TN]) {
#if IS_FLOAT
  if (VEC4_COLUMNS) {
    const BITS4 four = load_vec4(columns[0].at);
    [[unroll]] for (uint j = 0; j < TN; ++j) b[j] = value_of(four[j]);
    columns[0].at += uint64_t(gemm.b_depth);
    return;
  }
#endif
  [[unroll]] for (uint j = 0; j < TN; ++j) {
    b[j] = b_of(columns[j], safe, k);
    columns[j].at += uint64_t(gemm.b_depth);
  }
}

// Multiplies the elements at `count` values of k, at most CHUNK. Each thread reads the elements of `a` at one of these
// values. Advances `rows` by CHUNK values of k.
#define SUBGROUP_STEPS(count)                                                                       \
  do {                                                                                              \
    ACCUMULATOR own[TM];                                                                                    \
    const bool some = int(gl_SubgroupInvocationID % CHUNK) < (count);                               \
    [[unroll]] for (uint i = 0; i < TM; ++i) {                                                      \
      own[i] = (count) == CHUNK || some ? a_value(rows[i]) : ACCUMULATOR(0);                                \
      rows[i] += a_chunk;                                                                           \
    }                                                                                               \
    [[unroll]] for (int u = 0; u < (count); ++u) {                                                  \
      ACCUMULATOR a[TM], b[TN];                                                                             \
      read_columns(columns, safe, k + u, b);                                                        \
      [[unroll]] for (uint i = 0; i < TM; ++i) a[i] = subgroupBroadcast(own[i], u);                 \
      multiply(a, b);                                                                               \
    }                                                                                               \
  } while (false)
#endif

void multiply_shared(uint64_t a, uint64_t b, uint m0, uint n0, Column own, int k_begin, int k_end) {
  const uint lane = gl_LocalInvocationIndex, row = lane / THREADS_N * TM, column = lane % THREADS_N;
  // Threads are assigned to elements so that adjacent threads read contiguous elements. If `same_column` is true, all
  // elements of `b` that a thread reads are in one column.
  const bool a_by_depth = abs(gemm.a_depth) <= abs(gemm.a_row);
#ifdef FLOAT_ACTIVATIONS
  const bool same_column = true;
#else
  const bool same_column = WINDOW != 0;
#endif
  const bool b_by_depth = !same_column && abs(gemm.b_depth) <= abs(gemm.b_column);
  // A line is a row of `a` or a column of `b`. A thread's elements of a tile are evenly spaced over
  // lines or over k. The loop over k can therefore increment addresses, instead of computing them
  // in each iteration.
  const uint a_line = a_by_depth ? lane / DEPTH : lane % ROWS, a_k = a_by_depth ? lane % DEPTH : lane / ROWS;
  const uint b_line = b_by_depth ? lane / DEPTH : lane % COLUMNS, b_k = b_by_depth ? lane % DEPTH : lane / COLUMNS;
  const uint64_t a_step = uint64_t(a_by_depth ? gemm.a_row * (GROUP / DEPTH) : gemm.a_depth * (WORD * GROUP / ROWS));
  const uint64_t b_step =
      uint64_t(b_by_depth ? gemm.b_column * (GROUP / DEPTH) : gemm.b_depth * (WORD * GROUP / COLUMNS));
  const uint64_t a_next = uint64_t(gemm.a_depth * (DEPTH * WORD)), b_next = uint64_t(gemm.b_depth * (DEPTH * WORD));
  uint64_t a_at = a + uint64_t(gemm.a_row * int64_t(m0 + a_line) + gemm.a_depth * int64_t(k_begin + int(a_k * WORD)));
  uint64_t b_at = same_column ? own.at : b + uint64_t(gemm.b_column * int64_t(n0 + b_line + gemm.first_column));
  b_at += uint64_t(gemm.b_depth * int64_t(k_begin + int(b_k * WORD)));
#ifdef WIDE
  const uint rows = gemm.rows, columns = gemm.columns;
  const uint a_lines = a_by_depth ? GROUP / DEPTH : 0u, b_lines = b_by_depth ? GROUP / DEPTH : 0u;
  const uint a_depths = a_by_depth ? 0u : GROUP / ROWS, b_depths = b_by_depth ? 0u : GROUP / COLUMNS;
  float a_next_values[ROWS * DEPTH / GROUP], b_next_values[COLUMNS * DEPTH / GROUP];
  uint tile = 0u;
  for (int k0 = k_begin - DEPTH; k0 < k_end; k0 += DEPTH) {
    // Elements outside the matrices become 0 in both operands.
    const int left = k_end - k0 - DEPTH;
    if (left > 0) {
      [[unroll]] for (uint u = 0; u < ROWS * DEPTH / GROUP; ++u) {
        a_next_values[u] = 0.0;
        if (int(a_k + u * a_depths) < left && m0 + a_line + u * a_lines < rows)
          a_next_values[u] = a_value(a_at + a_step * uint64_t(u));
      }
      [[unroll]] for (uint u = 0; u < COLUMNS * DEPTH / GROUP; ++u) {
        const int k = int(b_k + u * b_depths);
        Column at = own;
        at.at = b_at + b_step * uint64_t(u);
        b_next_values[u] = 0.0;
        if (k < left && (same_column || n0 + b_line + u * b_lines < columns))
          b_next_values[u] = b_of(at, b, k0 + DEPTH + k);
      }
      a_at += a_next;
      b_at += b_next;
    }
    if (k0 >= k_begin) {
      [[unroll]] for (uint k = 0; k < DEPTH; ++k) {
        const vec4 a0 = a_tile[tile][k][row / 4], a1 = a_tile[tile][k][row / 4 + 1];
        const vec4 b0 = b_tile[tile][k][column], b1 = b_tile[tile][k][column + COLUMNS / 8];
        multiply(float[](a0[0], a0[1], a0[2], a0[3], a1[0], a1[1], a1[2], a1[3]),
                 float[](b0[0], b0[1], b0[2], b0[3], b1[0], b1[1], b1[2], b1[3]));
      }
      tile ^= 1u;
    }
    if (left > 0) {
      [[unroll]] for (uint u = 0; u < ROWS * DEPTH / GROUP; ++u) {
        const uint r = a_line + u * a_lines;
        a_tile[tile][a_k + u * a_depths][r / 4][r % 4] = a_next_values[u];
      }
      [[unroll]] for (uint u = 0; u < COLUMNS * DEPTH / GROUP; ++u) {
        const uint c = b_line + u * b_lines;
        b_tile[tile][b_k + u * b_depths][c / 4][c % 4] = b_next_values[u];
      }
    }
    barrier();
  }
#else
  for (int k0 = k_begin; k0 < k_end; k0 += DEPTH * WORD) {
    const int depth = min(DEPTH, (k_end - k0 + WORD - 1) / WORD);  // stops at k_end, because zero padding * inf is NaN
    [[unroll]] for (uint u = 0; u < ROWS * DEPTH / GROUP; ++u) {
      const uint r = a_line + (a_by_depth ? u * (GROUP / DEPTH) : 0u), k = a_k + (a_by_depth ? 0u : u * (GROUP / ROWS));
      if (int(k) < depth && m0 + r < gemm.rows)
        a_tile[k][r] = a_word(a_at + a_step * uint64_t(u), k_end - k0 - int(k * WORD));
    }
    [[unroll]] for (uint u = 0; u < COLUMNS * DEPTH / GROUP; ++u) {
      const uint c = b_line + (b_by_depth ? u * (GROUP / DEPTH) : 0u),
                 k = b_k + (b_by_depth ? 0u : u * (GROUP / COLUMNS));
      const int k_at = k0 + int(k * WORD);
      Column at = own;
      at.at = b_at + b_step * uint64_t(u);
      if (int(k) < depth && (same_column || n0 + c < gemm.columns)) b_tile[k][c] = b_word(at, b, k_at, k_end - k_at);
    }
    a_at += a_next;
    b_at += b_next;
    barrier();
    for (int k = 0; k < depth; ++k) {
      TILED left[TM], right[TN];
      [[unroll]] for (uint i = 0; i < TM; ++i) left[i] = a_tile[k][row + i];
      [[unroll]] for (uint j = 0; j < TN; ++j) right[j] = b_tile[k][column + j * THREADS_N];
      multiply(left, right);
    }
    barrier();
  }
#endif
}

// OWN_COLUMN_STEP is the distance between the first columns of adjacent threads. OFFSET_OF(j) is the distance from a
// thread's first column to its column j.
#ifdef WIDE
#define OWN_COLUMN_STEP 4u
#define OFFSET_OF(j) ((j) / 4u * (COLUMNS / 2) + (j) % 4u)
#else
#define OWN_COLUMN_STEP (ALGORITHM == BACKPLANE_ALGORITHM_SHARED ? 1u : TN)
#define OFFSET_OF(j) ((j) * column_step)
#endif

void main() {
  read_params();
  // For rows and columns past the end, threads read the last row or column, and store no result.
  const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  const uint groups = gl_NumWorkGroups.x * gl_NumWorkGroups.y;
#ifdef SUBGROUP
  const uint tile_rows = TM, tile_columns = TN * gl_SubgroupSize, column_step = VEC4_COLUMNS ? 1u : gl_SubgroupSize;
  const uint first = group * gl_NumSubgroups + gl_SubgroupID, stride = groups * gl_NumSubgroups;
  const uint own_row = 0, own_column = gl_SubgroupInvocationID * (VEC4_COLUMNS ? TN : 1u);
  const int own_depth = int(gl_SubgroupInvocationID % CHUNK);
#else
  // With shared memory, a thread's columns are THREADS_N apart, so that adjacent threads read
  // different banks and write contiguously.
  const uint tile_rows = ROWS, tile_columns = COLUMNS,
             column_step = ALGORITHM == BACKPLANE_ALGORITHM_SHARED ? THREADS_N : 1u;
  const uint first = group, stride = groups;
  const uint own_row = gl_LocalInvocationIndex / THREADS_N * TM,
             own_column = gl_LocalInvocationIndex % THREADS_N * OWN_COLUMN_STEP;
  const int own_depth = 0;
#endif
  const uint tiles_n = (gemm.columns + tile_columns - 1u) / tile_columns;
  const uint tiles = (gemm.rows + tile_rows - 1u) / tile_rows * tiles_n;
  const uint items = tiles * gemm.matrices * gemm.splits;
  for (uint item = first; item < items; item += stride) {
    const uint m0 = item % tiles / tiles_n * tile_rows, n0 = item % tiles_n * tile_columns;
    const uint matrix = item / tiles % gemm.matrices, slot = item / tiles / gemm.matrices;
    const uint split = gemm.first_split + slot;
    const uint k_begin = split % gemm.depth_splits * gemm.split_depth;
    const uint s_begin = split / gemm.depth_splits * gemm.split_segments;
    const int split_end = int(min(k_begin + gemm.split_depth, gemm.depth));
    const uint s_end = min(s_begin + gemm.split_segments, gemm.segments);
    const uint64_t a = matrix_at(gemm.a, matrix), b = matrix_at(gemm.b, matrix);
    const Target target = target_at(matrix, slot);
    const uint64_t safe = b;  // read instead of elements that do not exist; may be any readable address
    begin_matrix(matrix);
    const uint row = m0 + own_row, column = n0 + own_column;
    uvec4 indices[TN];
    ColumnBase bases[TN];
    [[unroll]] for (uint j = 0; j < TN; ++j) {
      indices[j] = column_index(ALGORITHM == BACKPLANE_ALGORITHM_SHARED ? n0 + gl_LocalInvocationIndex % COLUMNS
                                                                        : column + OFFSET_OF(j));
      bases[j] =
          column_base_at(b, VEC4_COLUMNS ? uvec4(min(column, gemm.columns - TN) + gemm.first_column) : indices[j]);
    }
    [[dont_unroll]] for (uint i = 0; i < TM; ++i) {
      [[unroll]] for (uint j = 0; j < TN; ++j) {
        [[unroll]] for (uint r = 1; r < TM; ++r) accumulators[r - 1][j] = accumulators[r][j];
        accumulators[TM - 1][j] = load_accumulator(target, row + i, column + OFFSET_OF(j));
      }
    }
#ifdef INTEGER_ACTIVATIONS
    [[unroll]] for (uint i = 0; i < TM; ++i) row_sums[i] = 0;
    [[unroll]] for (uint j = 0; j < TN; ++j) column_sums[j] = 0;
#endif
    uvec4 next = first_segment(s_begin);
    for (uint s = s_begin; s < s_end; ++s) {
      const Segment segment = segment_at(next);
      next = next_segment(next);
      if (segment.none) continue;
#ifdef FLOAT_ACTIVATIONS
      const int k_end = min(split_end, segment.depth);
#else
      const int k_end = split_end;
#endif
      if (ALGORITHM == BACKPLANE_ALGORITHM_SHARED) {
        multiply_shared(a + segment.a, b, m0, n0, column_at(bases[0], segment), int(k_begin), k_end);
        continue;
      }
      uint64_t rows[TM];
      Column columns[TN];
      int k = int(k_begin);
      const int64_t own_k = int64_t(k + own_depth);
      [[unroll]] for (uint i = 0; i < TM; ++i)
        rows[i] = a + segment.a + uint64_t(gemm.a_row * int64_t(min(row + i, gemm.rows - 1u)) + gemm.a_depth * own_k);
      [[unroll]] for (uint j = 0; j < TN; ++j) {
        columns[j] = column_at(bases[j], segment);
        columns[j].at += uint64_t(gemm.b_depth * int64_t(k));
      }
#ifdef SUBGROUP
      const uint64_t a_chunk = uint64_t(gemm.a_depth * CHUNK);
      for (; k + CHUNK <= k_end; k += CHUNK) SUBGROUP_STEPS(CHUNK);
      if (k < k_end) SUBGROUP_STEPS(k_end - k);
#elif !defined(DOT)
      for (; k < k_end; ++k) step(rows, columns, safe, k);
#endif
    }
#ifdef INTEGER_ACTIVATIONS
    if (s_begin < s_end) subtract_zero_points(matrix, row, column, column_step, split_end - int(k_begin));
#endif
    int64_t out_columns[TN];
    [[unroll]] for (uint j = 0; j < TN; ++j)
      out_columns[j] =
          out_column_at(ALGORITHM == BACKPLANE_ALGORITHM_SHARED ? column_index(column + OFFSET_OF(j)) : indices[j]);
    // Rotates each row to index 0, because a dynamic index would move the accumulators to memory.
    [[dont_unroll]] for (uint i = 0; i < TM; ++i) {
      [[unroll]] for (uint j = 0; j < TN; ++j) {
        store_result(target, row + i, column + OFFSET_OF(j), out_columns[j], accumulators[0][j]);
        [[unroll]] for (uint r = 1; r < TM; ++r) accumulators[r - 1][j] = accumulators[r][j];
      }
    }
  }
}
