// SPDX-License-Identifier: Apache-2.0
// Products of up to ROWS rows, whose columns of b run along k, as the weights of linear do; gemm.glsl says what is multiplied. A
// team of threads has COLUMNS columns and goes along k side by side, CHUNK elements a thread at once where operands are packed and
// aligned; what is read of b meets all rows. A team's sums are joined in shared memory, always in one order.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "gemm.glsl"

layout(constant_id = 4) const uint ROWS = 1;
#define TEAM 32
#define COLUMNS (BACKPLANE_ALONG_TILE_N * TEAM / GROUP)
const uint SUMS = ROWS * COLUMNS;  // of a thread, at most TEAM
#if T == T_F32 && !defined(QUANTIZED)
#define CHUNK 4
#else
#define CHUNK 8
#endif

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Memory2x32 { uvec2 value; };
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Memory4x32 { uvec4 value; };

shared SUM joined[SUMS * GROUP];
SUM sums[SUMS];

#define A_ALIGN uint(min(CHUNK * BYTES, 16))
#ifdef QUANTIZED
#define B_BYTES 1
#define B_ALIGN (WEIGHT_BITS == 8 ? uint(CHUNK) : uint(CHUNK / 2))
#else
#define B_BYTES (IS_FLOAT ? BYTES : 1)
#define B_ALIGN uint(min(CHUNK * B_BYTES, 16))
#endif

// ---- CHUNK elements of a row or column from k on ---------------------------------------------------------------------
void read_values(uint64_t at, out SUM values[CHUNK]) {
#if BYTES == 1
  const uvec2 words = Memory2x32(at).value;
  [[unroll]] for (uint e = 0; e < CHUNK; ++e) values[e] = SUM(value_of(words[e / 4] >> (e % 4 * 8) & 0xFFu));
#else
  [[unroll]] for (uint e = 0; e < CHUNK; e += 16 / BYTES) {
    const uvec4 words = Memory4x32(at + uint64_t(e * BYTES)).value;
    [[unroll]] for (uint w = 0; w < 4; ++w) {
#if BYTES == 4
      values[e + w] = value_of(words[w]);
#else
      values[e + 2 * w] = value_of(words[w] & 0xFFFFu);
      values[e + 2 * w + 1] = value_of(words[w] >> 16);
#endif
    }
  }
#endif
}

#ifdef INTEGER_ROWS
#define LESS_ZERO(value, zero) ((value) - (zero))
#else
#define LESS_ZERO(value, zero) (value)
#endif

#if defined(FLOAT_ROWS)
#define FINISHED(value) ((float(value) - column.zero) * column.scale)
// What the weights of column n at k become floats by.
Column column_of(uint n, uint k) {
  Segment segment;
  segment.b = 0ul;
  segment.block = product.segments > 1u ? k / product.depth : 0u;
  return column_at(place_at(0ul, index_of(n)), segment);
}
#elif defined(INTEGER_ROWS)
#define FINISHED(value) ((value) - zero)
#endif

void read_column(uint64_t at, uint n, int zero, uint k, out SUM values[CHUNK]) {
#if defined(QUANTIZED)
#ifdef FLOAT_ROWS
  const Column column = column_of(n, k);
#endif
  if (WEIGHT_BITS == 4) {
    const uint word = load32(at + uint64_t(k / 2u));
    [[unroll]] for (uint e = 0; e < CHUNK; ++e) values[e] = FINISHED(int(word >> (e * 4u) & 15u));
    return;
  }
  const uvec2 words = Memory2x32(at + uint64_t(k)).value;
  [[unroll]] for (uint e = 0; e < CHUNK; ++e) values[e] = FINISHED(whole(words[e / 4] >> (e % 4 * 8) & 0xFFu));
#elif IS_FLOAT
  read_values(at + uint64_t(k) * BYTES, values);
#else
  const uvec2 words = Memory2x32(at + uint64_t(k)).value;
  [[unroll]] for (uint e = 0; e < CHUNK; ++e) values[e] = int(words[e / 4] << (24 - e % 4 * 8)) >> 24;
#endif
}

// One of a column.
SUM read_one(uint64_t at, uint n, int zero, uint k) {
#if defined(QUANTIZED)
#ifdef FLOAT_ROWS
  const Column column = column_of(n, k);
#endif
  if (WEIGHT_BITS == 4) return FINISHED(int(value_of_4_bits(load8(byte_of_4_bits(at, k)), k)));
  return FINISHED(whole(load8(at + uint64_t(product.b_depth * int64_t(k)))));
#elif IS_FLOAT
  return value_of(load_bits(at + uint64_t(product.b_depth * int64_t(k))));
#else
  return int(load8(at + uint64_t(product.b_depth * int64_t(k))) << 24) >> 24;
#endif
}

// ---- a part ----------------------------------------------------------------------------------------------------------
struct Range {
  uint begin, end;  // k
};
Range range_of(uint part) {
  const uint first = part / product.depth_parts * product.segment_part, last = min(first + product.segment_part, product.segments);
  Range range;
  range.begin = first * product.depth + part % product.depth_parts * product.depth_part;
  range.end = product.depth_parts == 1u ? last * product.depth : min(range.begin + product.depth_part, (first + 1u) * product.depth);
#ifdef FLOAT_ROWS
  range.end = min(range.end, product.all_depth);
#endif
  return range;
}

// Whether CHUNK elements can be read at once from all rows and columns.
bool is_wide(uint64_t a, uint64_t b, uint begin) {
  const uint64_t a_places = a | uint64_t(product.a_row), b_places = b | uint64_t(product.b_column);
  bool wide = product.a_depth == BYTES && ((uint(a_places) & (A_ALIGN - 1u)) | (uint(b_places) & (B_ALIGN - 1u))) == 0u;
#ifdef QUANTIZED
  wide = wide && (WEIGHT_BITS == 4 ? product.b_byte : product.b_depth) == 1l;
  wide = wide && begin % CHUNK == 0u && (product.segments <= 1u || product.depth % CHUNK == 0u);
#else
  wide = wide && product.b_depth == B_BYTES;
#endif
  return wide;
}

void add_up(uint matrix, uint64_t a, uint64_t b, uint n0, Range range) {
  const uint lane = gl_LocalInvocationIndex % TEAM;
  uint64_t rows[ROWS], columns[COLUMNS];
  int row_zeros[ROWS], zeros[COLUMNS];
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    const uint m = min(r, product.rows - 1u);
    rows[r] = a + uint64_t(product.a_row * int64_t(m));
#ifdef INTEGER_ROWS
    row_zeros[r] = zero_of_row(matrix, m);
#else
    row_zeros[r] = 0;
#endif
  }
  [[unroll]] for (uint j = 0; j < COLUMNS; ++j) {
    const uint n = min(n0 + j, product.columns - 1u);
    columns[j] = b + uint64_t(product.b_column * int64_t(n + product.first_column));
#ifdef INTEGER_ROWS
    zeros[j] = zero_of_column(n);
#else
    zeros[j] = 0;
#endif
  }
  const uint wide_end = is_wide(a, b, range.begin) ? range.end - (range.end - range.begin) % CHUNK : range.begin;
  for (uint k = range.begin + lane * CHUNK; k < wide_end; k += TEAM * CHUNK) {
    SUM left[ROWS][CHUNK];
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      SUM values[CHUNK];
      read_values(rows[r] + uint64_t(k) * BYTES, values);
      [[unroll]] for (uint e = 0; e < CHUNK; ++e) left[r][e] = LESS_ZERO(values[e], row_zeros[r]);
    }
    [[unroll]] for (uint j = 0; j < COLUMNS; ++j) {
      SUM right[CHUNK];
      read_column(columns[j], n0 + j, zeros[j], k, right);
      [[unroll]] for (uint r = 0; r < ROWS; ++r)
        [[unroll]] for (uint e = 0; e < CHUNK; ++e) sums[r * COLUMNS + j] += left[r][e] * right[e];
    }
  }
  for (uint k = wide_end + lane; k < range.end; k += TEAM) {
    SUM left[ROWS];
    [[unroll]] for (uint r = 0; r < ROWS; ++r)
      left[r] = LESS_ZERO(SUM(value_of(load_bits(rows[r] + uint64_t(product.a_depth * int64_t(k))))), row_zeros[r]);
    [[unroll]] for (uint j = 0; j < COLUMNS; ++j) {
      const SUM right = read_one(columns[j], n0 + j, zeros[j], k);
      [[unroll]] for (uint r = 0; r < ROWS; ++r) sums[r * COLUMNS + j] += left[r] * right;
    }
  }
}

// A thread's place is moved by the sum's number, so that neither who writes nor who reads meets a bank twice.
#define PLACE(sum, thread) ((sum) * GROUP + ((thread) ^ (sum)))

void main() {
  read_product();
  const uint thread = gl_LocalInvocationIndex, team = thread / TEAM;
  const uint tiles = (product.columns + BACKPLANE_ALONG_TILE_N - 1u) / BACKPLANE_ALONG_TILE_N;
  const uint items = tiles * product.matrices * product.parts;
  for (uint item = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; item < items;
       item += gl_NumWorkGroups.x * gl_NumWorkGroups.y) {
    const uint n0 = item % tiles * BACKPLANE_ALONG_TILE_N;
    const uint matrix = item / tiles % product.matrices, slot = item / tiles / product.matrices;
    [[unroll]] for (uint i = 0; i < SUMS; ++i) sums[i] = SUM(0);
    add_up(matrix, matrix_at(product.a, matrix), matrix_at(product.b, matrix), n0 + team * COLUMNS,
           range_of(product.first_part + slot));
    [[unroll]] for (uint i = 0; i < SUMS; ++i) joined[PLACE(i, thread)] = sums[i];
    barrier();
    const Target target = target_at(matrix, slot);
    for (uint i = thread; i < GROUP / TEAM * SUMS; i += GROUP) {
      const uint which = i % SUMS, first = i / SUMS * TEAM;
      const uint m = which / COLUMNS, n = n0 + i / SUMS * COLUMNS + which % COLUMNS;
      SUM sum = begin_sum(target, m, n);
      for (uint l = 0; l < TEAM; ++l) sum += joined[PLACE(which, first + l)];
      end_sum(target, m, n, out_column_at(index_of(n)), sum);
    }
    barrier();
  }
}
