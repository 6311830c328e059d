// SPDX-License-Identifier: Apache-2.0
// Products by cooperative matrices: a subgroup multiplies SM x SK elements of a by SK x SN of b at once. gemm.glsl says what is
// multiplied. T is a's and b's dtype; sums are f32, or i32 of integers. A workgroup makes TILE x TILE sums from tiles in shared
// memory, whose lines run as the operand does, so that 16 bytes go through a thread at once where strides and alignment allow it.
//
// Written in GL_NV_cooperative_matrix, which every glslc knows; cooperative_matrix.py makes VK_KHR_cooperative_matrix of it.
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

// cooperative_matrix.py tells a, b and sums by these three numbers.
layout(constant_id = 4) const uint SM = 16;
layout(constant_id = 5) const uint SN = 16;
layout(constant_id = 6) const uint SK = 16;
layout(constant_id = 7) const uint LANES = 32;        // of a subgroup
layout(constant_id = 8) const uint SUBGROUPS_M = 2;   // subgroups of a workgroup, along the rows
layout(constant_id = 9) const uint TILE = 64;         // rows and columns of a workgroup
const uint SUBGROUPS = GROUP / LANES;
const uint PART_M = TILE / SUBGROUPS_M, PART_N = TILE * SUBGROUPS_M / SUBGROUPS;  // of a subgroup
const uint MATRICES_M = PART_M / SM, MATRICES_N = PART_N / SN;

#if IS_FLOAT
#define MATRIX_A fcoopmatNV<16, gl_ScopeSubgroup, SM, SK>
#define MATRIX_B fcoopmatNV<16, gl_ScopeSubgroup, SK, SN>
#define MATRIX_SUM fcoopmatNV<32, gl_ScopeSubgroup, SM, SN>
#else
#define MATRIX_A icoopmatNV<8, gl_ScopeSubgroup, SM, SK>
#define MATRIX_B icoopmatNV<8, gl_ScopeSubgroup, SK, SN>
#define MATRIX_SUM icoopmatNV<32, gl_ScopeSubgroup, SM, SN>
#endif

#define PACK (4 / BYTES)            // elements of a word
#define QUAD (4 * PACK)             // elements of 16 bytes
#define DEPTH (BACKPLANE_MATRIX_DEPTH_BYTES / BYTES)
// Words from line to line, where k runs along it, and where rows or columns do; 16 bytes more than they hold, for other banks.
#define ALONG_DEPTH (BACKPLANE_MATRIX_DEPTH_BYTES / 4 + 4)
#define ACROSS_DEPTH (TILE / PACK + 4)
const uint TILE_WORDS = TILE * ALONG_DEPTH;  // of 64 and more the greater of the two
shared uint a_tile[TILE_WORDS];
shared uint b_tile[TILE_WORDS];
shared SUM staged[SUBGROUPS * SM * SN];
#ifdef INTEGER_ROWS
shared int line_sums[2 * TILE];  // of a's rows, then of b's columns: what zero points multiply

int sum_of_bytes(uint word) {
  int sum = 0;
  [[unroll]] for (int e = 0; e < 4; ++e) sum += int(word << (24 - 8 * e)) >> 24;
  return sum;
}
// The sum of line `line` of a tile.
#define LINE_SUM(tile, along, line, sum)                                                                          \
  do {                                                                                                            \
    if (along) {                                                                                                  \
      for (uint w_ = 0; w_ < DEPTH / PACK; ++w_) sum += sum_of_bytes(tile[(line) * ALONG_DEPTH + w_]);            \
    } else {                                                                                                      \
      for (uint k_ = 0; k_ < DEPTH; ++k_)                                                                         \
        sum += int(tile[k_ * ACROSS_DEPTH + (line) / PACK] << (24u - 8u * ((line) % PACK))) >> 24;                \
    }                                                                                                             \
  } while (false)
#endif

layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Memory128 { uvec4 value; };

// PACK elements, the first `count` of which are there.
uint word_at(uint64_t at, int64_t step, int count) {
  uint word = 0u;
  [[unroll]] for (int e = 0; e < PACK; ++e) {
    if (e < count) word |= load_bits(at + uint64_t(step * int64_t(e))) << (e * BYTES * 8);
  }
  return word;
}

// Fills `lines` of `run` elements from `from`; beyond `line_count` and `run_count` with zeros.
#define FILL(tile, line_words, lines, run, from, line_step, run_step, line_count, run_count)                       \
  do {                                                                                                            \
    const bool wide_ = (run_step) == BYTES && (((from) | uint64_t(line_step)) & 15ul) == 0ul;                     \
    for (uint i_ = gl_LocalInvocationIndex; i_ < (lines) * ((run) / QUAD); i_ += GROUP) {                         \
      const uint line_ = i_ / ((run) / QUAD), quad_ = i_ % ((run) / QUAD);                                        \
      const uint64_t at_ = (from) + uint64_t((line_step) * int64_t(line_) + (run_step) * int64_t(quad_ * QUAD));  \
      const int left_ = int(line_) < (line_count) ? (run_count) - int(quad_ * QUAD) : 0;                          \
      uvec4 words_;                                                                                               \
      if (wide_ && left_ >= QUAD) {                                                                               \
        words_ = Memory128(at_).value;                                                                            \
      } else {                                                                                                    \
        [[unroll]] for (int w_ = 0; w_ < 4; ++w_)                                                                 \
          words_[w_] = word_at(at_ + uint64_t((run_step) * int64_t(w_ * PACK)), run_step, left_ - w_ * PACK);     \
      }                                                                                                           \
      [[unroll]] for (uint w_ = 0; w_ < 4; ++w_) tile[line_ * (line_words) + quad_ * 4u + w_] = words_[w_];       \
    }                                                                                                             \
  } while (false)

// Columns of a window or of 4 bits: a thread fills along k, of one column.
void fill_columns(Column own, int k0, int k_end) {
  const uint line = gl_LocalInvocationIndex % TILE;
  for (uint w = gl_LocalInvocationIndex / TILE; w < DEPTH / PACK; w += GROUP / TILE) {
    uint word = 0u;
    [[unroll]] for (uint e = 0; e < PACK; ++e) {
      const int k = k0 + int(w * PACK + e);
      if (k >= own.first && k < min(own.end, k_end)) {
#ifdef INTEGER_ROWS
        word |= value_of_4_bits(load8(byte_of_4_bits(own.at, uint(k))), uint(k)) << (e * 8u);
#else
        word |= load_bits(own.at + uint64_t(product.b_depth * int64_t(k))) << (e * BYTES * 8);
#endif
      }
    }
    b_tile[line * ALONG_DEPTH + w] = word;
  }
}

MATRIX_SUM sums[MATRICES_M * MATRICES_N];

void multiply_tiles(uint row, uint column, bool a_along, bool b_along) {
  [[unroll]] for (uint k = 0; k < DEPTH; k += SK) {
    MATRIX_A a[MATRICES_M];
    [[unroll]] for (uint i = 0; i < MATRICES_M; ++i) {
      const uint m = row + i * SM;
      if (a_along) coopMatLoadNV(a[i], a_tile, m * ALONG_DEPTH + k / PACK, ALONG_DEPTH, false);
      else coopMatLoadNV(a[i], a_tile, k * ACROSS_DEPTH + m / PACK, ACROSS_DEPTH, true);
    }
    [[unroll]] for (uint j = 0; j < MATRICES_N; ++j) {
      const uint n = column + j * SN;
      MATRIX_B b;
      if (b_along) coopMatLoadNV(b, b_tile, n * ALONG_DEPTH + k / PACK, ALONG_DEPTH, true);
      else coopMatLoadNV(b, b_tile, k * ACROSS_DEPTH + n / PACK, ACROSS_DEPTH, false);
      [[unroll]] for (uint i = 0; i < MATRICES_M; ++i)
        sums[i * MATRICES_N + j] = coopMatMulAddNV(a[i], b, sums[i * MATRICES_N + j]);
    }
  }
}

#ifdef INTEGER_ROWS
#define BY_COLUMN (WEIGHT_BITS == 4)
// What zero points change the sum of the tile's row and column by, of `count` products (matmul.comp).
int of_zeros(Target target, uint m0, uint n0, uint row, uint column, int count) {
  if ((!ZERO_OF_A && !ZERO_OF_B) || m0 + row >= product.rows || n0 + column >= product.columns) return 0;
  const int za = zero_of_row(target.matrix, m0 + row), zb = zero_of_column(n0 + column);
  return za * (count * zb - line_sums[TILE + column]) - zb * line_sums[row];
}
#else
#define BY_COLUMN (WINDOW != 0)
#define of_zeros(target, m0, n0, row, column, count) SUM(0)
#endif

// Of the tile at m0 and n0, the subgroup's sums from `row` and `column` on.
void end_sums(Target target, uint m0, uint n0, uint row, uint column, int count) {
  const uint stage = gl_SubgroupID * (SM * SN);
  [[unroll]] for (uint at = 0; at < MATRICES_M * MATRICES_N; ++at) {
    coopMatStoreNV(sums[at], staged, stage, SN, false);
    subgroupBarrier();
    for (uint i = gl_SubgroupInvocationID; i < SM * SN; i += LANES) {
      const uint r = row + at / MATRICES_N * SM + i / SN, c = column + at % MATRICES_N * SN + i % SN;
      const uint m = m0 + r, n = n0 + c;
      const SUM zeros = of_zeros(target, m0, n0, r, c, count);
      end_sum(target, m, n, out_column_at(index_of(n)), begin_sum(target, m, n) + staged[stage + i] + zeros);
    }
    subgroupBarrier();
  }
}

void main() {
  read_product();
  const uint row = gl_SubgroupID % SUBGROUPS_M * PART_M, column = gl_SubgroupID / SUBGROUPS_M * PART_N;
  const bool a_along = abs(product.a_depth) <= abs(product.a_row);
  const bool b_along = BY_COLUMN || abs(product.b_depth) <= abs(product.b_column);
  const uint tiles_n = (product.columns + TILE - 1u) / TILE;
  const uint tiles = (product.rows + TILE - 1u) / TILE * tiles_n;
  const uint items = tiles * product.matrices * product.parts;
  for (uint item = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; item < items;
       item += gl_NumWorkGroups.x * gl_NumWorkGroups.y) {
    const uint m0 = item % tiles / tiles_n * TILE, n0 = item % tiles_n * TILE;
    const uint matrix = item / tiles % product.matrices, slot = item / tiles / product.matrices;
    const uint part = product.first_part + slot;
    const int k_begin = int(part % product.depth_parts * product.depth_part);
    const int k_end = int(min(uint(k_begin) + product.depth_part, product.depth));
    const uint s_begin = part / product.depth_parts * product.segment_part;
    const uint s_end = min(s_begin + product.segment_part, product.segments);
    const uint64_t a0 = matrix_at(product.a, matrix) + uint64_t(product.a_row * int64_t(m0));
    const uint64_t b0 = matrix_at(product.b, matrix);
    const uint64_t b_columns = b0 + uint64_t(product.b_column * int64_t(product.first_column + n0));
    const int rows = int(product.rows - m0), columns = int(product.columns - n0);
    begin_matrix(matrix);
    const Place place = place_at(b0, index_of(n0 + gl_LocalInvocationIndex % TILE));
    [[unroll]] for (uint i = 0; i < MATRICES_M * MATRICES_N; ++i) sums[i] = MATRIX_SUM(SUM(0));
#ifdef INTEGER_ROWS
    const uint own_line = gl_LocalInvocationIndex % TILE;
    int line_sum = 0;
#endif
    uvec4 next = first_segment(s_begin);
    for (uint s = s_begin; s < s_end; ++s) {
      const Segment segment = segment_at(next);
      next = next_segment(next);
      if (segment.none) continue;
      const Column own = column_at(place, segment);
      for (int k = k_begin; k < k_end; k += DEPTH) {
        const uint64_t a = a0 + segment.a + uint64_t(product.a_depth * int64_t(k));
        if (a_along) FILL(a_tile, ALONG_DEPTH, TILE, DEPTH, a, product.a_row, product.a_depth, rows, k_end - k);
        else FILL(a_tile, ACROSS_DEPTH, DEPTH, TILE, a, product.a_depth, product.a_row, k_end - k, rows);
        const uint64_t b = b_columns + uint64_t(product.b_depth * int64_t(k));
        if (BY_COLUMN) fill_columns(own, k, k_end);
        else if (b_along) FILL(b_tile, ALONG_DEPTH, TILE, DEPTH, b, product.b_column, product.b_depth, columns, k_end - k);
        else FILL(b_tile, ACROSS_DEPTH, DEPTH, TILE, b, product.b_depth, product.b_column, k_end - k, columns);
        barrier();
        multiply_tiles(row, column, a_along, b_along);
#ifdef INTEGER_ROWS
        if (ZERO_OF_B && gl_LocalInvocationIndex < TILE) LINE_SUM(a_tile, a_along, own_line, line_sum);
        if (ZERO_OF_A && gl_LocalInvocationIndex / TILE == 1u) LINE_SUM(b_tile, b_along, own_line, line_sum);
#endif
        barrier();
      }
    }
#ifdef INTEGER_ROWS
    if (gl_LocalInvocationIndex < 2u * TILE) line_sums[gl_LocalInvocationIndex] = line_sum;
    barrier();
#endif
    end_sums(target_at(matrix, slot), m0, n0, row, column, s_begin < s_end ? k_end - k_begin : 0);
#ifdef INTEGER_ROWS
    barrier();  // the next tile's sums wait for these to be read
#endif
  }
}
