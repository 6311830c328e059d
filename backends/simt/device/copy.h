// SPDX-License-Identifier: Apache-2.0
// Copies elements that have SIMT_T::kBits bits. A fill is a copy of one value.
#include "transpose.h"

struct Copy {
  typedef SIMT_T::Bits Out;
  typedef SIMT_T::Bits In;
  SIMT_FN static Out apply(In x, u32) { return x; }
};
SIMT_MAP1(copy, Copy)

// Copies a matrix whose rows are contiguous in `out` and whose columns are contiguous in `a`. A
// group transposes tiles of SIMT_TILE * SIMT_TILE elements in local memory. The last two dimensions
// are the matrix. p.count is the number of tiles.
#define SIMT_TILE 32
SIMT_KERNEL(copy_transpose)(Pointer out, Pointer a, NestParams p) {
  typedef SIMT_T::Bits Bits;
  SIMT_SHARED(Bits, tile, SIMT_TILE * (SIMT_TILE + 1));
  const u32 rows = p.shape[p.rank - 2], columns = p.shape[p.rank - 1];
  const u32 across = (columns + SIMT_TILE - 1) / SIMT_TILE, down = (rows + SIMT_TILE - 1) / SIMT_TILE;
  for (u32 t = group_id(); t < p.count; t += group_count()) {
    u32 rest = t / across;
    const u32 column = (t - rest * across) * SIMT_TILE;
    const u32 band = rest / down, row = (rest - band * down) * SIMT_TILE;
    i64 to = 0, from = 0;
    rest = band;
    for (u32 d = p.rank - 2; d-- > 0;) {
      const u32 quotient = rest / p.shape[d], coordinate = rest - quotient * p.shape[d];
      rest = quotient;
      to += p.strides[0][d] * coordinate;
      from += p.strides[1][d] * coordinate;
    }
    to += p.strides[0][p.rank - 2] * row + column;
    from += p.strides[1][p.rank - 1] * column + row;
    SIMT_GLOBAL Bits* target = at_offset<Bits>(out, p.offsets[0]) + to;
    SIMT_GLOBAL const Bits* source = at_offset<Bits>(a, p.offsets[1]) + from;
    for (u32 i = local_id(); i < SIMT_TILE * SIMT_TILE; i += group_size()) {
      const u32 c = i / SIMT_TILE, r = i % SIMT_TILE;
      if (row + r < rows && column + c < columns)
        tile[r * (SIMT_TILE + 1) + c] = source[p.strides[1][p.rank - 1] * c + r];
    }
    group_barrier();
    for (u32 i = local_id(); i < SIMT_TILE * SIMT_TILE; i += group_size()) {
      const u32 r = i / SIMT_TILE, c = i % SIMT_TILE;
      if (row + r < rows && column + c < columns)
        target[p.strides[0][p.rank - 2] * r + c] = tile[r * (SIMT_TILE + 1) + c];
    }
    group_barrier();
  }
}

// Copies a matrix like copy_transpose, in blocks that threads transpose in registers.
SIMT_KERNEL(copy_blocks)(Pointer out, Pointer a, NestParams p) {
  const u32 last = p.rank - 1;
  for (u32 tile = group_id(); tile < p.count; tile += group_count()) {
    Position<2> at;
    if (!locate_block<2>(p, tile, at)) continue;
    Block lines;
    load_block(at_offset<SIMT_T::Bits>(a, p.offsets[1]) + at.at[1], p.strides[1][last], lines);
    SIMT_GLOBAL SIMT_T::Bits* to = at_offset<SIMT_T::Bits>(out, p.offsets[0]) + at.at[0];
    SIMT_UNROLL for (u32 i = 0; i < SIMT_LINE; ++i) {
      u32 line[SIMT_LINE_WORDS];
      SIMT_UNROLL for (u32 w = 0; w < SIMT_LINE_WORDS; ++w) line[w] = transposed_word(lines, i, w);
      store_line(to + p.strides[0][last - 1] * i, line);
    }
  }
}

// Like copy_transpose, for groups of SIMT_BLOCK_THREADS threads. A thread begins all loads of a tile before it stores.
// In local memory, the distance between the rows of a tile is an odd number of 32-bit words, or of 64-bit elements. So
// threads that access a column of the tile use different banks.
#define SIMT_WIDE_TILE (SIMT_T_BITS <= 16 ? 64 : 32)
#define SIMT_WIDE_ROW (SIMT_WIDE_TILE + (SIMT_T_BITS < 32 ? 32 / SIMT_T_BITS : 1))
SIMT_KERNEL(copy_tiles)(Pointer out, Pointer a, NestParams p) {
  typedef SIMT_T::Bits Bits;
  SIMT_SHARED(Bits, tile, SIMT_WIDE_TILE * SIMT_WIDE_ROW);
  enum { kEach = SIMT_WIDE_TILE * SIMT_WIDE_TILE / SIMT_BLOCK_THREADS, kStep = SIMT_BLOCK_THREADS / SIMT_WIDE_TILE };
  const u32 last = p.rank - 1, rows = p.shape[last - 1], columns = p.shape[last];
  const u32 across = (columns + SIMT_WIDE_TILE - 1) / SIMT_WIDE_TILE,
            down = (rows + SIMT_WIDE_TILE - 1) / SIMT_WIDE_TILE;
  const u32 own = local_id() % SIMT_WIDE_TILE, first = local_id() / SIMT_WIDE_TILE;
  for (u32 t = group_id(); t < p.count; t += group_count()) {
    u32 rest = t / across;
    const u32 column = (t - rest * across) * SIMT_WIDE_TILE;
    const u32 band = rest / down, row = (rest - band * down) * SIMT_WIDE_TILE;
    i64 to = p.strides[0][last - 1] * row + column, from = p.strides[1][last] * column + row;
    rest = band;
    for (u32 d = last - 1; d-- > 0;) {
      const u32 quotient = rest / p.shape[d], coordinate = rest - quotient * p.shape[d];
      rest = quotient;
      to += p.strides[0][d] * coordinate;
      from += p.strides[1][d] * coordinate;
    }
    SIMT_GLOBAL Bits* target = at_offset<Bits>(out, p.offsets[0]) + to;
    SIMT_GLOBAL const Bits* source = at_offset<Bits>(a, p.offsets[1]) + from;
    Bits x[kEach];
    SIMT_UNROLL for (u32 j = 0; j < kEach; ++j) {
      const u32 c = first + j * kStep;
      x[j] = row + own < rows && column + c < columns ? source[p.strides[1][last] * c + own] : (Bits)0;
    }
    SIMT_UNROLL for (u32 j = 0; j < kEach; ++j) tile[own * SIMT_WIDE_ROW + first + j * kStep] = x[j];
    group_barrier();
    SIMT_UNROLL for (u32 j = 0; j < kEach; ++j) {
      const u32 r = first + j * kStep;
      if (row + r < rows && column + own < columns)
        target[p.strides[0][last - 1] * r + own] = tile[r * SIMT_WIDE_ROW + own];
    }
    group_barrier();
  }
}
