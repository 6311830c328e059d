// SPDX-License-Identifier: Apache-2.0
// Square blocks of elements in registers of a thread, for matrices whose contiguous dimension differs between operands.
// A thread loads or stores a whole line of a block at once. The including file defines SIMT_T.
#pragma once
#include "nest.h"

// Elements per line of a block, and 32-bit words per line.
#define SIMT_LINE (SIMT_T_BITS == 8 ? 8 : 128 / SIMT_T_BITS)
#define SIMT_LINE_WORDS (SIMT_LINE * SIMT_T_BITS / 32)
// Maximum number of adjacent threads of a sub-group whose lines are adjacent in a row of the output.
#define SIMT_BLOCK_ACROSS 8

// A block: SIMT_LINE lines of SIMT_LINE elements, in words of 32 bits.
struct Block {
  u32 at[SIMT_LINE][SIMT_LINE_WORDS];
};
SIMT_FN void load_line(SIMT_GLOBAL const SIMT_T::Bits* from, SIMT_PRIVATE u32* to) {
#if SIMT_T_BITS == 8
  const u64 both = *(SIMT_GLOBAL const u64*)from;
  to[0] = (u32)both;
  to[1] = (u32)(both >> 32);
#else
  const QuadU32 words = *(SIMT_GLOBAL const QuadU32*)from;
  to[0] = words.x;
  to[1] = words.y;
  to[2] = words.z;
  to[3] = words.w;
#endif
}
SIMT_FN void store_line(SIMT_GLOBAL SIMT_T::Bits* to, SIMT_PRIVATE const u32* from) {
#if SIMT_T_BITS == 8
  *(SIMT_GLOBAL u64*)to = (u64)from[1] << 32 | from[0];
#else
  QuadU32 words;
  words.x = from[0];
  words.y = from[1];
  words.z = from[2];
  words.w = from[3];
  *(SIMT_GLOBAL QuadU32*)to = words;
#endif
}
// Loads the lines of a block, which are `step` elements apart.
SIMT_FN void load_block(SIMT_GLOBAL const SIMT_T::Bits* from, i64 step, Block& block) {
  SIMT_UNROLL for (u32 i = 0; i < SIMT_LINE; ++i) load_line(from + step * i, block.at[i]);
}

// Returns word `w` of line `i` of the transposed block.
SIMT_FN u32 transposed_word(const Block& block, u32 i, u32 w) {
#if SIMT_T_BITS == 64
  return block.at[w / 2][2 * i + w % 2];
#elif SIMT_T_BITS == 32
  return block.at[w][i];
#elif SIMT_T_BITS == 16
  const u32 low = block.at[2 * w][i / 2], high = block.at[2 * w + 1][i / 2];
  return i % 2 == 0 ? (low & 0xFFFFu) | high << 16 : low >> 16 | (high & 0xFFFF0000u);
#else
  u32 word = 0;
  SIMT_UNROLL for (u32 k = 0; k < 4; ++k) word |= (block.at[4 * w + k][i / 4] >> 8 * (i % 4) & 0xFFu) << 8 * k;
  return word;
#endif
}
SIMT_FN void transpose(const Block& block, Block& out) {
  SIMT_UNROLL for (u32 i = 0; i < SIMT_LINE; ++i) {
    SIMT_UNROLL for (u32 w = 0; w < SIMT_LINE_WORDS; ++w) out.at[i][w] = transposed_word(block, i, w);
  }
}

// Sets the positions of this thread's block in the operands. Returns false if the thread has no block in the tile. The
// last two dimensions of `p` are the matrix, and its extents are multiples of SIMT_LINE. extra[0], a power of two, is
// the number of a group's threads whose lines are in the same row of the output. p.count is the number of tiles. A
// group processes a tile at a time.
template <int Count>
SIMT_FN bool locate_block(const NestParams& p, u32 tile, Position<Count>& at) {
  const u32 last = p.rank - 1, across = (u32)p.extra[0], down = group_size() / across;
  const u32 near = smaller(across, (u32)SIMT_BLOCK_ACROSS), few = smaller(width() / near, down);
  const u32 id = local_id(), part = id / (near * few), parts = across / near;
  const u32 x = id % near + part % parts * near, y = id / near % few + part / parts * few;
  const u32 rows = p.shape[last - 1] / SIMT_LINE, columns = p.shape[last] / SIMT_LINE;
  const u32 tiles_across = (columns + across - 1) / across, tiles_down = (rows + down - 1) / down;
  u32 rest = tile / tiles_across;
  const u32 column = (tile - rest * tiles_across) * across + x;
  const u32 band = rest / tiles_down, row = (rest - band * tiles_down) * down + y;
  if (row >= rows || column >= columns) return false;
  SIMT_UNROLL for (int k = 0; k < Count; ++k) {
    at.at[k] = p.strides[k][last - 1] * (row * SIMT_LINE) + p.strides[k][last] * (column * SIMT_LINE);
  }
  rest = band;
  for (u32 d = last - 1; d-- > 0;) {
    const u32 quotient = rest / p.shape[d], coordinate = rest - quotient * p.shape[d];
    rest = quotient;
    SIMT_UNROLL for (int k = 0; k < Count; ++k) at.at[k] += p.strides[k][d] * coordinate;
  }
  return true;
}

// Loads a block of operand `k`, and transposes it if necessary, so that each line belongs to one row of the output.
SIMT_FN void load_block_of(Pointer base, const NestParams& p, int k, i64 at, Block& block) {
  const u32 last = p.rank - 1;
  SIMT_GLOBAL const SIMT_T::Bits* from = at_offset<SIMT_T::Bits>(base, p.offsets[k]) + at;
  if (p.strides[k][last] == 1) {
    load_block(from, p.strides[k][last - 1], block);
  } else {
    Block lines;
    load_block(from, p.strides[k][last], lines);
    transpose(lines, block);
  }
}
// Returns element `e` of a line.
SIMT_FN SIMT_T::Bits element_of(SIMT_PRIVATE const u32* words, u32 e) {
#if SIMT_T_BITS == 64
  return (u64)words[2 * e + 1] << 32 | words[2 * e];
#elif SIMT_T_BITS == 32
  return words[e];
#else
  return (SIMT_T::Bits)(words[e * SIMT_T_BITS / 32] >> e * SIMT_T_BITS % 32);
#endif
}
SIMT_FN void add_element(SIMT_PRIVATE u32* words, u32 e, SIMT_T::Bits bits) {
#if SIMT_T_BITS == 64
  words[2 * e] = (u32)bits;
  words[2 * e + 1] = (u32)(bits >> 32);
#elif SIMT_T_BITS == 32
  words[e] = bits;
#else
  const u32 shift = e * SIMT_T_BITS % 32, word = e * SIMT_T_BITS / 32;
  words[word] = (shift == 0u ? 0u : words[word]) | (u32)bits << shift;
#endif
}

// out = a op b. Each operand is contiguous along one of the last two dimensions.
template <class Op>
SIMT_FN void map2_blocks(Pointer out, Pointer a, Pointer b, const NestParams& p) {
  const u32 last = p.rank - 1;
  for (u32 tile = group_id(); tile < p.count; tile += group_count()) {
    Position<3> at;
    if (!locate_block<3>(p, tile, at)) continue;
    Block x, y;
    load_block_of(a, p, 1, at.at[1], x);
    load_block_of(b, p, 2, at.at[2], y);
    SIMT_GLOBAL SIMT_T::Bits* to = at_offset<SIMT_T::Bits>(out, p.offsets[0]) + at.at[0];
    SIMT_UNROLL for (u32 i = 0; i < SIMT_LINE; ++i) {
      u32 line[SIMT_LINE_WORDS];
      SIMT_UNROLL for (u32 e = 0; e < SIMT_LINE; ++e) {
        add_element(line, e, Op::apply(element_of(x.at[i], e), element_of(y.at[i], e), p.option));
      }
      store_line(to + p.strides[0][last - 1] * i, line);
    }
  }
}
