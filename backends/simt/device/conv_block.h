// SPDX-License-Identifier: Apache-2.0
// The kernels of convolutions for GPUs with sub-groups of at least 32 threads. Operands a and b must be in memory, and
// the distance between any two elements of an operand must be below 2^31 elements. Where elements of b are not in
// quads, a thread loads all its terms of b from one column, so it computes the column's position in the image once. A
// table in local memory contains the positions of terms. ConvParams defines columns, terms, phases and taps.
#include "block.h"
#include "conv_window.h"

#define TERMS 64             // terms that threads add to the table at a time; the table contains twice as many
#define NO_TERM 0x80000000u  // position of a term that does not exist

// A table of terms in local memory.
struct TermTable {
  SIMT_LOCAL u32* a;      // positions in operand a, modulo 2^32
  SIMT_LOCAL QuadU32* b;  // a position in operand b, modulo 2^32, and three coordinates in its image
  SIMT_LOCAL u32* split;  // the first term of the split, its end, and the three coordinates of Matrix::tap
};
#define SPLIT_NUMBERS 5
// Adds terms `first` to `first` + TERMS - 1 of the split to the table.
SIMT_FN void add_terms(const ConvParams& p, const TermTable& table, u32 first) {
  Matrix matrix;
  SIMT_UNROLL for (int d = 1; d < 4; ++d) matrix.tap[d] = (i32)table.split[d + 1];
  for (u32 i = local_id(); i < TERMS; i += group_size()) {
    const u32 k = table.split[0] + first + i, to = (first + i) % (2 * TERMS);
    const Index index = index_of(p.depth_shape, smaller(k, p.depth - 1u));
    const bool exists = k < table.split[1] && is_tap(p, matrix, index);
    const Window window = window_of(p, index, p.depth_step, p.b_depth);
    u32 at_a = 0;
    SIMT_UNROLL for (int d = 0; d < 4; ++d) at_a += (u32)p.a_depths[d] * index.at[d];
    QuadU32 at_b;
    at_b.x = (u32)window.at;
    // NO_TERM plus the coordinate of any column is outside the image, so the term loads 0.
    at_b.y = exists ? (u32)window.position[0] : NO_TERM;
    at_b.z = (u32)window.position[1];
    at_b.w = (u32)window.position[2];
    table.a[to] = exists ? at_a : NO_TERM;
    table.b[to] = at_b;
  }
}

// Loads the operands of a block as quads, or term by term.
template <int side, bool quads_a, bool quads_b>
struct WindowSource {
  typedef SIMT_T::Bits Bits;
  const ConvParams& p;
  TermTable terms;
  Lines<SIMT_T> a, b;
  u32 column[4];  // the thread's column of b, in the form of TermTable::b
  u32 position;   // index of the next stage's first term in its split

  SIMT_INLINED Bits term_of_a(u32 i) const {
    const u32 at = terms.a[(position + a.k + i) % (2 * TERMS)];
    return at != NO_TERM ? a.from[(i32)at] : (Bits)0;
  }
  SIMT_INLINED Bits term_of_b(u32 i) const {
    const QuadU32 term = terms.b[(position + b.k + i) % (2 * TERMS)];
    const bool is_inside = (column[1] + term.y < (u32)p.extent[1]) & (column[2] + term.z < (u32)p.extent[2]) &
                           (column[3] + term.w < (u32)p.extent[3]);
    return is_inside ? b.from[(i32)(column[0] + term.x)] : (Bits)0;
  }
  SIMT_INLINED void load(u32 depth) {
    if (quads_a && quads_b) {
      load_lines<true>(a, depth);
    } else if (quads_a) {
      const u32 at = terms.a[(position + a.k) % (2 * TERMS)];
      a.own.x = a.own.y = a.own.z = a.own.w = 0;
      if (at != NO_TERM) a.own = *(SIMT_GLOBAL const typename QuadOf<Bits>::Type*)(a.from + (i32)at);
    } else {
      a.own.x = term_of_a(0);
      a.own.y = term_of_a(1);
      a.own.z = term_of_a(2);
      a.own.w = term_of_a(3);
    }
    if (quads_b) {
      load_lines<true>(b, depth);
      return;
    }
    b.own.x = term_of_b(0);
    b.own.y = term_of_b(1);
    b.own.z = term_of_b(2);
    b.own.w = term_of_b(3);
    // The new terms replace those before `position`, which all threads read before the last barrier.
    if (position % TERMS == 0u) add_terms(p, terms, position + TERMS);
    position += BLOCK_DEPTH;
  }
  SIMT_INLINED void put(SIMT_LOCAL Number* stage) const {
    put_lines<side, quads_a>(a, stage);
    put_lines<side, quads_b>(b, stage + Block<side>::kOperand);
  }
};

// The block that a group computes: its first row and column, its split, and the index of its GEMM.
struct WindowBlock {
  u32 row, column, split, matrix;
};
SIMT_FN u32 block_count(const ConvParams& p, u32 side) {
  return (p.rows + side - 1u) / side * ((p.columns + side - 1u) / side) * p.matrices * p.splits;
}
SIMT_FN WindowBlock block_of(const ConvParams& p, u32 index, u32 side) {
  WindowBlock out;
  const u32 row_blocks = (p.rows + side - 1u) / side, column_blocks = (p.columns + side - 1u) / side;
  const u32 rest = index / row_blocks, quotient = rest / column_blocks;
  out.row = (index - rest * row_blocks) * side;
  out.column = (rest - quotient * column_blocks) * side;
  out.split = quotient / p.matrices;
  out.matrix = quotient - out.split * p.matrices;
  return out;
}

// Returns whether each four adjacent columns of operand b form a quad: they are contiguous in memory, and begin at a
// multiple of the size of a quad.
SIMT_FN bool has_quads_of_columns(const ConvParams& p, SIMT_GLOBAL const SIMT_T::Bits* b) {
  i64 strides = p.b_depth | p.b_column;
  SIMT_UNROLL for (int d = 1; d < 3; ++d) strides |= p.image[d] * p.column_step[d];
  return (p.layout & CONV_B_PLAIN) != 0u && p.column_run % 4u == 0u && strides % 4 == 0 && at_quad(b);
}
template <int side, class Source>
SIMT_INLINED void multiply_columns(BlockSums<side>& sums, Source& source, const Window& column, u32 depth,
                                   SIMT_LOCAL NumberQuad* memory) {
  source.column[0] = (u32)column.at;
  SIMT_UNROLL for (int d = 0; d < 3; ++d) source.column[d + 1] = (u32)column.position[d];
  multiply_block<side>(sums, source, depth, memory);
}
template <int side>
SIMT_INLINED void multiply_windows(const ConvParams& p, Pointer a, Pointer b, const Matrix& matrix,
                                   const WindowBlock& block, BlockSums<side>& sums, SIMT_LOCAL NumberQuad* memory,
                                   const TermTable& terms) {
  typedef SIMT_T::Bits Bits;
  const u32 begin = block.split * p.split_depth, end = smaller(begin + p.split_depth, p.depth);
  const u32 depth = begin < end ? end - begin : 0u, rows = p.rows - block.row;
  SIMT_GLOBAL const Bits* from_a = at_offset<Bits>(a, p.offsets[1]) + matrix.a + p.row_strides[1] * block.row;
  SIMT_GLOBAL const Bits* from_b = at_offset<Bits>(b, p.offsets[2]);
  // All taps exist if that of the last term does, because this term has the greatest index in each dimension.
  const bool has_all_taps = is_tap(p, matrix, index_of(p.depth_shape, p.depth - 1u));
  Lines<SIMT_T> lines_a = lines_of<side, SIMT_T>(from_a + begin, p.row_strides[1], 1, rows, p.depth), lines_b;
  const bool quads_a = (p.layout & CONV_A_QUADS) != 0u && has_all_taps && at_quad(from_a);
  if (quads_a && lines_a.is_quad && p.a_run >= p.depth && has_quads_of_columns(p, from_b + matrix.b)) {
    const u32 line = smaller(set_quad_of_lines<side>(lines_b), p.columns - block.column - 4u);
    lines_b.step = p.b_depth * BLOCK_DEPTH;
    lines_b.from = from_b + column_of(p, matrix, index_of(p.column_shape, block.column + line)).at +
                   p.b_depth * (begin + lines_b.k);
    WindowSource<side, true, true> source = {p, terms, lines_a, lines_b, {}, 0u};
    multiply_block<side>(sums, source, depth, memory);
    return;
  }
  set_by_line<side>(lines_b);
  lines_b.from = from_b;
  const Window column =
      column_of(p, matrix, index_of(p.column_shape, smaller(block.column + local_id() % side, p.columns - 1u)));
  if (local_id() == 0u) {
    terms.split[0] = begin;
    terms.split[1] = end;
    SIMT_UNROLL for (int d = 1; d < 4; ++d) terms.split[d + 1] = (u32)matrix.tap[d];
  }
  group_barrier();
  add_terms(p, terms, 0u);
  group_barrier();
  if (quads_a) {
    const u32 line = set_quad_of_terms<side>(lines_a);
    lines_a.from = from_a + p.row_strides[1] * smaller(line, rows - 1u);
    WindowSource<side, true, false> source = {p, terms, lines_a, lines_b, {}, 0u};
    multiply_columns<side>(sums, source, column, depth, memory);
  } else {
    set_by_line<side>(lines_a);
    lines_a.from = from_a + p.row_strides[1] * smaller(local_id() % side, rows - 1u);
    WindowSource<side, false, false> source = {p, terms, lines_a, lines_b, {}, 0u};
    multiply_columns<side>(sums, source, column, depth, memory);
  }
}

template <int side>
SIMT_INLINED void store_windows(const ConvParams& p, Pointer c, Pointer bias, Pointer partials, const Matrix& matrix,
                                const WindowBlock& block, BlockSums<side>& sums) {
  const u32 thread = opaque(local_id()), rows = p.rows - block.row, columns = p.columns - block.column;
  if (p.splits != 1u) {
    SIMT_GLOBAL float* to = partial_of(p, partials, block.split, block.matrix, block.row) + block.column;
    store_block<side>(sums, (SIMT_GLOBAL u32*)to, p.columns, 1, rows, columns);
    return;
  }
  const u32 first = first_row<side>(thread);
  if (p.bias_bytes != 0u) {
    SIMT_UNROLL for (int r = 0; r < BLOCK_ROWS; ++r) {
      const u32 row = first + r % 4 + r / 4 * Block<side>::kHalf;
      const float own = row_bias(p, bias, matrix, block.row + smaller(row, rows - 1u));
      SIMT_UNROLL for (int i = 0; i < Block<side>::kColumns; ++i) sums.at[r][i] += own;
    }
  }
  activate_block<side>(sums, p.activation);
  SIMT_UNROLL for (int i = 0; i < Block<side>::kColumns; i += 4) {
    const u32 column = first_column<side>(thread) + i / 4 * Block<side>::kHalf;
    if (column >= columns) continue;
    SIMT_GLOBAL SIMT_T::Bits* to[4];
    bool has[4];
    SIMT_UNROLL for (u32 j = 0; j < 4u; ++j) {
      const Index own = index_of(p.column_shape, block.column + smaller(column + j, columns - 1u));
      has[j] = column + j < columns && has_column(p, matrix, own);
      to[j] = at_offset<SIMT_T::Bits>(c, p.offsets[0]) + position_of(p, matrix, block.row, own);
    }
    const bool is_quad = has[0] && has[1] && has[2] && has[3] && to[1] == to[0] + 1 && to[2] == to[0] + 2 &&
                         to[3] == to[0] + 3 && at_quad(to[0]) && p.row_strides[0] % 4 == 0;
    SIMT_UNROLL for (int r = 0; r < BLOCK_ROWS; ++r) {
      const u32 row = first + r % 4 + r / 4 * Block<side>::kHalf;
      if (row >= rows) continue;
      const i64 at = p.row_strides[0] * row;
      if (is_quad) {
        store_quad(sums.at[r] + i, to[0] + at);
        continue;
      }
      SIMT_UNROLL for (int j = 0; j < 4; ++j) {
        if (has[j]) to[j][at] = SIMT_T::bits(sums.at[r][i + j]);
      }
    }
  }
}
template <int side>
SIMT_INLINED void convolve(const ConvParams& p, Pointer c, Pointer a, Pointer b, Pointer bias, Pointer partials,
                           SIMT_LOCAL NumberQuad* memory, const TermTable& terms) {
  const u32 count = block_count(p, side);
  for (u32 index = group_id(); index < count; index += group_count()) {
    BlockSums<side> sums;
    const WindowBlock block = block_of(p, index, side);
    multiply_windows<side>(p, a, b, matrix_of(p, block.matrix), block, sums, memory, terms);
    // block_of() computes the positions again, so that they do not occupy registers while the group multiplies.
    const WindowBlock last = block_of(p, opaque(index), side);
    store_windows<side>(p, c, bias, partials, matrix_of(p, last.matrix), last, sums);
  }
}

#define CONV_BLOCK(side, threads, groups)                                           \
  SIMT_SIZED_KERNEL(conv_block##side, threads, groups)                              \
  (Pointer c, Pointer a, Pointer b, Pointer bias, Pointer partials, ConvParams p) { \
    SIMT_SHARED(NumberQuad, local_quads, Block<side>::kQuads);                      \
    SIMT_SHARED(u32, terms_of_a, 2 * TERMS);                                        \
    SIMT_SHARED(QuadU32, terms_of_b, 2 * TERMS);                                    \
    SIMT_SHARED(u32, split, SPLIT_NUMBERS);                                         \
    const TermTable table = {terms_of_a, terms_of_b, split};                        \
    convolve<side>(p, c, a, b, bias, partials, local_quads, table);                 \
  }
CONV_BLOCK(128, 256, 2)
CONV_BLOCK(64, 128, 4)
