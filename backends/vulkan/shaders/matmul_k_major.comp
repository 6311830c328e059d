// SPDX-License-Identifier: Apache-2.0
// GEMM of at most ROWS rows with K-major `b`, such as the weights of linear. gemm.glsl defines the GEMM. COLUMN_THREADS
// adjacent threads together compute COLUMNS columns, and their reads along k are coalesced. If operands are dense and
// aligned, a thread reads CHUNK elements at once. Each element of `b` is read once for all rows. The sums of the
// COLUMN_THREADS threads are combined in shared memory, always in the same order.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "gemm.glsl"

layout(constant_id = BACKPLANE_ID_GEMM_ROWS) const uint ROWS = 1;
#define COLUMN_THREADS 32
#define COLUMNS (BACKPLANE_K_MAJOR_TILE_N * COLUMN_THREADS / GROUP)
const uint OUTPUTS = ROWS * COLUMNS;  // sums per thread, at most COLUMN_THREADS
#if T == T_F32 && !defined(QUANTIZED)
#define CHUNK 4
#else
#define CHUNK 8
#endif

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Memory2x32 { uvec2 value; };
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Memory4x32 { uvec4 value; };

shared ACCUMULATOR shared_sums[OUTPUTS * GROUP];
ACCUMULATOR accumulators[OUTPUTS];

#define A_ALIGN uint(min(CHUNK * BYTES, 16))
#ifdef QUANTIZED
#define B_BYTES 1
#define B_ALIGN (WEIGHT_BITS == 8 ? uint(CHUNK) : uint(CHUNK / 2))
#else
#define B_BYTES (IS_FLOAT ? BYTES : 1)
#define B_ALIGN uint(min(CHUNK * B_BYTES, 16))
#endif

// ---- reads of rows of `a` and columns of `b` ----------------------------------------------------
void read_values(uint64_t at, out ACCUMULATOR values[CHUNK]) {
#if BYTES == 1
  const uvec2 words = Memory2x32(at).value;
  [[unroll]] for (uint e = 0; e < CHUNK; ++e) values[e] = ACCUMULATOR(value_of(words[e / 4] >> (e % 4 * 8) & 0xFFu));
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

#ifdef INTEGER_ACTIVATIONS
#define MINUS_ZERO(value, zero) ((value) - (zero))
#else
#define MINUS_ZERO(value, zero) (value)
#endif

#if defined(FLOAT_ACTIVATIONS)
#define DEQUANTIZED(value) ((float(value) - column.zero) * column.scale)
// Returns column n with its scale and zero point at k.
Column column_of(uint n, uint k) {
  Segment segment;
  segment.b = 0ul;
  segment.block = gemm.segments > 1u ? k / gemm.depth : 0u;
  return column_at(column_base_at(0ul, column_index(n)), segment);
}
#elif defined(INTEGER_ACTIVATIONS)
#define DEQUANTIZED(value) ((value) - zero)
#endif

void read_column(uint64_t at, uint n, int zero, uint k, out ACCUMULATOR values[CHUNK]) {
#if defined(QUANTIZED)
#ifdef FLOAT_ACTIVATIONS
  const Column column = column_of(n, k);
#endif
  if (WEIGHT_BITS == 4) {
    const uint word = load32(at + uint64_t(k / 2u));
    [[unroll]] for (uint e = 0; e < CHUNK; ++e) values[e] = DEQUANTIZED(int(word >> (e * 4u) & 15u));
    return;
  }
  const uvec2 words = Memory2x32(at + uint64_t(k)).value;
  [[unroll]] for (uint e = 0; e < CHUNK; ++e) values[e] = DEQUANTIZED(whole(words[e / 4] >> (e % 4 * 8) & 0xFFu));
#elif IS_FLOAT
  read_values(at + uint64_t(k) * BYTES, values);
#else
  const uvec2 words = Memory2x32(at + uint64_t(k)).value;
  [[unroll]] for (uint e = 0; e < CHUNK; ++e) values[e] = int(words[e / 4] << (24 - e % 4 * 8)) >> 24;
#endif
}

// Reads the element of column n at k.
ACCUMULATOR read_one(uint64_t at, uint n, int zero, uint k) {
#if defined(QUANTIZED)
#ifdef FLOAT_ACTIVATIONS
  const Column column = column_of(n, k);
#endif
  if (WEIGHT_BITS == 4) return DEQUANTIZED(int(value_of_4_bits(load8(byte_of_4_bits(at, k)), k)));
  return DEQUANTIZED(whole(load8(at + uint64_t(gemm.b_depth * int64_t(k)))));
#elif IS_FLOAT
  return value_of(load_bits(at + uint64_t(gemm.b_depth * int64_t(k))));
#else
  return int(load8(at + uint64_t(gemm.b_depth * int64_t(k))) << 24) >> 24;
#endif
}

// ---- the range of k of a split ------------------------------------------------------------------
struct Range {
  uint begin, end;  // k runs from `begin` to `end` - 1
};
Range range_of(uint split) {
  const uint first = split / gemm.depth_splits * gemm.split_segments,
             last = min(first + gemm.split_segments, gemm.segments);
  Range range;
  range.begin = first * gemm.depth + split % gemm.depth_splits * gemm.split_depth;
  range.end =
      gemm.depth_splits == 1u ? last * gemm.depth : min(range.begin + gemm.split_depth, (first + 1u) * gemm.depth);
#ifdef FLOAT_ACTIVATIONS
  range.end = min(range.end, gemm.all_depth);
#endif
  return range;
}

// Returns whether CHUNK elements of each row and column can be read at once.
bool can_load_chunks(uint64_t a, uint64_t b, uint begin) {
  const uint64_t a_bits = a | uint64_t(gemm.a_row), b_bits = b | uint64_t(gemm.b_column);
  bool wide = gemm.a_depth == BYTES && ((uint(a_bits) & (A_ALIGN - 1u)) | (uint(b_bits) & (B_ALIGN - 1u))) == 0u;
#ifdef QUANTIZED
  wide = wide && (WEIGHT_BITS == 4 ? gemm.b_byte : gemm.b_depth) == 1l;
  wide = wide && begin % CHUNK == 0u && (gemm.segments <= 1u || gemm.depth % CHUNK == 0u);
#else
  wide = wide && gemm.b_depth == B_BYTES;
#endif
  return wide;
}

void accumulate(uint matrix, uint64_t a, uint64_t b, uint n0, Range range) {
  const uint lane = gl_LocalInvocationIndex % COLUMN_THREADS;
  uint64_t rows[ROWS], columns[COLUMNS];
  int row_zeros[ROWS], zeros[COLUMNS];
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    const uint m = min(r, gemm.rows - 1u);
    rows[r] = a + uint64_t(gemm.a_row * int64_t(m));
#ifdef INTEGER_ACTIVATIONS
    row_zeros[r] = zero_of_row(matrix, m);
#else
    row_zeros[r] = 0;
#endif
  }
  [[unroll]] for (uint j = 0; j < COLUMNS; ++j) {
    const uint n = min(n0 + j, gemm.columns - 1u);
    columns[j] = b + uint64_t(gemm.b_column * int64_t(n + gemm.first_column));
#ifdef INTEGER_ACTIVATIONS
    zeros[j] = zero_of_column(n);
#else
    zeros[j] = 0;
#endif
  }
  const uint wide_end =
      can_load_chunks(a, b, range.begin) ? range.end - (range.end - range.begin) % CHUNK : range.begin;
  for (uint k = range.begin + lane * CHUNK; k < wide_end; k += COLUMN_THREADS * CHUNK) {
    ACCUMULATOR left[ROWS][CHUNK];
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      ACCUMULATOR values[CHUNK];
      read_values(rows[r] + uint64_t(k) * BYTES, values);
      [[unroll]] for (uint e = 0; e < CHUNK; ++e) left[r][e] = MINUS_ZERO(values[e], row_zeros[r]);
    }
    [[unroll]] for (uint j = 0; j < COLUMNS; ++j) {
      ACCUMULATOR right[CHUNK];
      read_column(columns[j], n0 + j, zeros[j], k, right);
      [[unroll]] for (uint r = 0; r < ROWS; ++r)
        [[unroll]] for (uint e = 0; e < CHUNK; ++e) accumulators[r * COLUMNS + j] += left[r][e] * right[e];
    }
  }
  for (uint k = wide_end + lane; k < range.end; k += COLUMN_THREADS) {
    ACCUMULATOR left[ROWS];
    [[unroll]] for (uint r = 0; r < ROWS; ++r)
      left[r] =
          MINUS_ZERO(ACCUMULATOR(value_of(load_bits(rows[r] + uint64_t(gemm.a_depth * int64_t(k))))), row_zeros[r]);
    [[unroll]] for (uint j = 0; j < COLUMNS; ++j) {
      const ACCUMULATOR right = read_one(columns[j], n0 + j, zeros[j], k);
      [[unroll]] for (uint r = 0; r < ROWS; ++r) accumulators[r * COLUMNS + j] += left[r] * right;
    }
  }
}

// Index of a thread's sum in shared memory. The XOR prevents bank conflicts of writes and of reads.
#define SLOT(sum, thread) ((sum) * GROUP + ((thread) ^ (sum)))

void main() {
  read_params();
  const uint thread = gl_LocalInvocationIndex, column_group = thread / COLUMN_THREADS;
  const uint tiles = (gemm.columns + BACKPLANE_K_MAJOR_TILE_N - 1u) / BACKPLANE_K_MAJOR_TILE_N;
  const uint items = tiles * gemm.matrices * gemm.splits;
  for (uint item = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; item < items;
       item += gl_NumWorkGroups.x * gl_NumWorkGroups.y) {
    const uint n0 = item % tiles * BACKPLANE_K_MAJOR_TILE_N;
    const uint matrix = item / tiles % gemm.matrices, slot = item / tiles / gemm.matrices;
    [[unroll]] for (uint i = 0; i < OUTPUTS; ++i) accumulators[i] = ACCUMULATOR(0);
    accumulate(matrix, matrix_at(gemm.a, matrix), matrix_at(gemm.b, matrix), n0 + column_group * COLUMNS,
           range_of(gemm.first_split + slot));
    [[unroll]] for (uint i = 0; i < OUTPUTS; ++i) shared_sums[SLOT(i, thread)] = accumulators[i];
    barrier();
    const Target target = target_at(matrix, slot);
    for (uint i = thread; i < GROUP / COLUMN_THREADS * OUTPUTS; i += GROUP) {
      const uint which = i % OUTPUTS, first = i / OUTPUTS * COLUMN_THREADS;
      const uint m = which / COLUMNS, n = n0 + i / OUTPUTS * COLUMNS + which % COLUMNS;
      ACCUMULATOR sum = load_accumulator(target, m, n);
      for (uint l = 0; l < COLUMN_THREADS; ++l) sum += shared_sums[SLOT(which, first + l)];
      store_result(target, m, n, out_column_at(column_index(n)), sum);
    }
    barrier();
  }
}
