// SPDX-License-Identifier: Apache-2.0
// Convolutions and their gradients as implicit GEMMs: loads of operand b compute the position in
// the image, so no im2col copy is needed. A sub-group computes TILE_ROWS rows and two columns per
// lane. Tiles of both operands are in local memory. ConvParams defines the terms of these GEMMs.
#include "conv_window.h"

#define TILE_ROWS 8
#define TILE_DEPTH 32
#define PITCH_A (TILE_DEPTH + 1)
// Capacity of local memory, in f32 numbers. A group has at most 16 sub-groups and 256 threads, so
// tile_a has at most 128 rows, and rows * width is at most 2048.
#define TILE_NUMBERS 5248

// Copies terms `k` to `k + depth - 1` of `tile_rows` rows of a, from `row` on, to local memory. Loads are not inside
// branches that depend on the lane, because compilers for CPUs would process such branches one lane at a time. Instead,
// lanes without a term load the last term, and terms without a tap load element 0.
SIMT_FN void load_a(const ConvParams& p, Pointer a, Matrix matrix, u32 row, u32 k, u32 depth, u32 tile_rows,
                    SIMT_LOCAL float* to) {
  // All taps exist if that of the last term does, because this term has the greatest index in each dimension.
  const bool has_all_taps = is_tap(p, matrix, index_of(p.depth_shape, p.depth - 1u));
  const bool is_immediate = (p.immediate >> 1 & 1u) != 0;
  for (u32 i = 0; i < depth; i += width()) {
    const bool is_whole = i + width() <= depth;
    if (is_whole && has_all_taps && !is_immediate && (k + i) % p.a_run + width() <= p.a_run) {
      const Index first = index_of(p.depth_shape, k + i);
      SIMT_GLOBAL const SIMT_T::Bits* from = at_offset<SIMT_T::Bits>(a, p.offsets[1]) + matrix.a;
      SIMT_UNROLL for (int d = 0; d < 4; ++d) from += p.a_depths[d] * first.at[d];
      for (u32 r = subgroup(); r < tile_rows; r += subgroups()) {
        const float value = SIMT_T::value((from + p.row_strides[1] * smaller(row + r, p.rows - 1u))[lane()]);
        (to + r * PITCH_A + i)[lane()] = row + r < p.rows ? value : 0.0f;
      }
      continue;
    }
    const u32 own = smaller(i + lane(), depth - 1u);
    const Index term = index_of(p.depth_shape, k + own);
    const bool exists = is_tap(p, matrix, term);
    i64 at = matrix.a;
    SIMT_UNROLL for (int d = 0; d < 4; ++d) at += p.a_depths[d] * term.at[d];
    for (u32 r = subgroup(); r < tile_rows; r += subgroups()) {
      const bool inside = exists && row + r < p.rows;
      const float value = value_at(a, p, 1, inside ? p.row_strides[1] * (row + r) + at : (i64)0);
      to[r * PITCH_A + own] = inside ? value : 0.0f;
    }
  }
}
// Loads one element per lane. `at` is the position of this lane's element. If `is_run` is true, the
// lanes' elements are contiguous, and `run` is the position of lane 0's element.
SIMT_FN float load_lane(const ConvParams& p, Pointer b, bool inside, bool is_run, i64 run, i64 at) {
  if (is_run) return inside ? value_at(b, p, 2, run + lane()) : 0.0f;
  return inside ? value_at(b, p, 2, at) : 0.0f;
}
// The column of b that a lane loads. `is_run` states whether the columns of all lanes are contiguous. `run` is
// the position of lane 0's column.
struct Column {
  Window window;
  i64 run;
  bool is_run;
};
SIMT_FN Column lane_column(const ConvParams& p, Matrix matrix, u32 first) {
  Column out;
  const Index begin = index_of(p.column_shape, smaller(first, p.columns - 1));
  out.is_run = begin.at[3] + width() <= p.column_run;
  out.run = column_of(p, matrix, begin).at;
  out.window = column_of(p, matrix, index_of(p.column_shape, smaller(first + lane(), p.columns - 1)));
  return out;
}
// Copies terms `k` to `k + depth - 1` of the columns of b from `first` on to local memory. Elements outside
// the image are 0.
SIMT_FN void load_b(const ConvParams& p, Pointer b, Matrix matrix, Column x, Column y, u32 first, u32 k, u32 depth,
                    SIMT_LOCAL float* to) {
  const u32 columns = 2 * width();
  if (p.b_by_term == 0) {
    for (u32 r = subgroup(); r < depth; r += subgroups()) {
      const Index index = index_of(p.depth_shape, k + r);
      const Window term = window_of(p, index, p.depth_step, p.b_depth);
      const bool exists = is_tap(p, matrix, index);
      SIMT_LOCAL float* line = to + r * columns;
      line[lane()] =
          load_lane(p, b, exists && is_inside(p, x.window, term), x.is_run, x.run + term.at, x.window.at + term.at);
      (line + width())[lane()] =
          load_lane(p, b, exists && is_inside(p, y.window, term), y.is_run, y.run + term.at, y.window.at + term.at);
    }
    return;
  }
  for (u32 i = 0; i < depth; i += width()) {
    if (i + lane() >= depth) continue;
    const Index begin = index_of(p.depth_shape, k + i), index = index_of(p.depth_shape, k + i + lane());
    const bool exists = is_tap(p, matrix, index), is_run = begin.at[3] + width() <= p.term_run;
    const i64 run = window_of(p, begin, p.depth_step, p.b_depth).at;
    const Window term = window_of(p, index, p.depth_step, p.b_depth);
    for (u32 c = subgroup(); c < columns; c += subgroups()) {
      const Window column = column_of(p, matrix, index_of(p.column_shape, smaller(first + c, p.columns - 1)));
      to[(i + lane()) * columns + c] =
          load_lane(p, b, exists && is_inside(p, column, term), is_run, column.at + run, column.at + term.at);
    }
  }
}

// Returns whether `column` and the next columns, one per lane, are contiguous in c.
SIMT_FN bool is_run_of_c(const ConvParams& p, Matrix matrix, u32 column) {
  if (column + width() > p.columns || p.c_columns[3] != 1) return false;
  const Index first = index_of(p.column_shape, column), last = index_of(p.column_shape, column + width() - 1u);
  return first.at[3] + width() - 1u == last.at[3] && has_column(p, matrix, first) && has_column(p, matrix, last);
}
SIMT_KERNEL(conv)(Pointer c, Pointer a, Pointer b, Pointer bias, Pointer partials, ConvParams p) {
  SIMT_SHARED(float, tiles, TILE_NUMBERS);
  const u32 tile_rows = TILE_ROWS * subgroups(), tile_columns = 2 * width();
  SIMT_LOCAL float* tile_a = tiles;
  SIMT_LOCAL float* tile_b = tiles + tile_rows * PITCH_A;
  const u32 row_tiles = (p.rows + tile_rows - 1) / tile_rows;
  const u32 column_tiles = (p.columns + tile_columns - 1) / tile_columns;
  const u32 items = row_tiles * column_tiles * p.matrices * p.splits;
  for (u32 item = group_id(); item < items; item += group_count()) {
    u32 rest = item / row_tiles;
    const u32 first_row = (item - rest * row_tiles) * tile_rows;
    const u32 quotient = rest / column_tiles, first_column = (rest - quotient * column_tiles) * tile_columns;
    const u32 split = quotient / p.matrices, index = quotient - split * p.matrices;
    const Matrix matrix = matrix_of(p, index);
    const Column x = lane_column(p, matrix, first_column), y = lane_column(p, matrix, first_column + width());
    const u32 begin = split * p.split_depth, end = smaller(begin + p.split_depth, p.depth);
    float first[TILE_ROWS], second[TILE_ROWS];
    SIMT_UNROLL for (int r = 0; r < TILE_ROWS; ++r) first[r] = second[r] = 0.0f;
    for (u32 k = begin; k < end; k += TILE_DEPTH) {
      const u32 depth = smaller(end - k, TILE_DEPTH);
      load_a(p, a, matrix, first_row, k, depth, tile_rows, tile_a);
      load_b(p, b, matrix, x, y, first_column, k, depth, tile_b);
      group_barrier();
      SIMT_LOCAL const float* from_a = tile_a + subgroup() * TILE_ROWS * PITCH_A;
      SIMT_LOCAL const float* from_b = tile_b;
      for (u32 i = 0; i < depth; ++i) {
        const float u = from_b[lane()], v = (from_b + width())[lane()];
        SIMT_UNROLL for (int r = 0; r < TILE_ROWS; ++r) {
          const float factor = from_a[r * PITCH_A];
          first[r] = multiply_add(factor, u, first[r]);
          second[r] = multiply_add(factor, v, second[r]);
        }
        ++from_a;
        from_b += tile_columns;
      }
      group_barrier();
    }
    const u32 row = first_row + uniform_subgroup() * TILE_ROWS;
    SIMT_UNROLL for (int side = 0; side < 2; ++side) {
      const u32 column = first_column + side * width(), own = column + lane();
      if (p.splits == 1 && is_run_of_c(p, matrix, column)) {
        const Index begin = index_of(p.column_shape, column);
        SIMT_UNROLL for (int r = 0; r < TILE_ROWS; ++r) {
          if (row + r >= p.rows) break;
          SIMT_GLOBAL SIMT_T::Bits* to =
              at_offset<SIMT_T::Bits>(c, p.offsets[0]) + position_of(p, matrix, row + r, begin);
          to[lane()] = result_of(p, bias, matrix, row + r, side == 0 ? first[r] : second[r]);
        }
        continue;
      }
      if (own >= p.columns) continue;
      const Index position = index_of(p.column_shape, own);
      SIMT_UNROLL for (int r = 0; r < TILE_ROWS; ++r) {
        if (row + r >= p.rows) continue;
        const float sum = side == 0 ? first[r] : second[r];
        if (p.splits != 1) {
          partial_of(p, partials, split, index, row + r)[own] = sum;
        } else {
          put(p, c, bias, matrix, row + r, position, sum);
        }
      }
    }
  }
}

// Adds the partial sums of each element of c. One thread processes an element.
SIMT_KERNEL(conv_combine)(Pointer c, Pointer, Pointer, Pointer bias, Pointer partials, ConvParams p) {
  for (u32 i = global_id(); i < p.matrices * p.rows * p.columns; i += global_size()) {
    const u32 line = i / p.columns, column = i - line * p.columns;
    const u32 index = line / p.rows, row = line - index * p.rows;
    float sum = 0.0f;
    for (u32 split = 0; split < p.splits; ++split) sum += partial_of(p, partials, split, index, row)[column];
    put(p, c, bias, matrix_of(p, index), row, index_of(p.column_shape, column), sum);
  }
}
