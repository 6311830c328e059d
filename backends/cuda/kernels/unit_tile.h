// SPDX-License-Identifier: Apache-2.0
// Parts of the kernels that compute matrix products of f16 or bf16 on matrix units, with sums in f32. A group computes
// a tile of c. Copies to shared memory run ahead of the products by several steps of k. A tile of a or b consists of
// lines of 128 bytes. Chunks of 16 bytes are permuted within each line, so that adjacent rows are in different banks.
#pragma once
#include "device/activation.h"
#include "warp_mma.h"

#include "gpu_host/unit_params.h"

typedef SIMT_T Element;
#define UNIT_LINE 128   // bytes of a line
#define UNIT_BLOCK 64   // elements of a line
#define UNIT_GROUPED 8  // tiles of rows that groups process before the next tile of columns, so that b stays in caches

struct UnitPointers {
  Pointer c, a, b, bias, sums;
};

struct UnitTile {
  u32 row, column, batch, split;
};
SIMT_FN UnitTile tile_of(const UnitParams& p, u32 index, u32 rows, u32 columns) {
  const u32 tiles = p.row_tiles * p.column_tiles, matrix = index / tiles, in_matrix = index - matrix * tiles;
  const u32 band = in_matrix / (UNIT_GROUPED * p.column_tiles), first = band * UNIT_GROUPED;
  const u32 height = smaller(p.row_tiles - first, (u32)UNIT_GROUPED);
  const u32 in_band = in_matrix - band * UNIT_GROUPED * p.column_tiles, column = in_band / height;
  UnitTile out;
  out.row = (first + in_band - column * height) * rows;
  out.column = column * columns;
  out.split = matrix / p.batches;
  out.batch = matrix - out.split * p.batches;
  return out;
}

// Returns the number of bytes to copy for the 8 elements from index `at` on. Elements from index `end` on do not
// exist.
SIMT_FN u32 chunk_bytes(u32 at, u32 end) { return at >= end ? 0u : smaller((end - at) * 2, 16u); }

// The copies of a thread for tiles of a or b. If `kAcross` is false, a line contains UNIT_BLOCK elements along k of a
// row of a or a column of b. Otherwise a line contains the elements of UNIT_BLOCK rows of a or columns of b for one
// k. The lines of UNIT_DEPTH values of k are followed by the lines of the next UNIT_BLOCK rows or columns.
template <bool kAcross, int kExtent, int kThreads>
struct UnitSource {
  enum { kCopies = kExtent * 8 / kThreads, kLines = kThreads / 8, kPeriod = UNIT_DEPTH / kLines };
  SIMT_GLOBAL const u8 *base, *from;  // the matrix, and the source of this thread's first copy at k = 0
  i64 pitch;                          // bytes
  u32 line, at;                       // the first line of this thread in a tile, and its first row or column
  u32 chunk, target;                  // the thread's chunk of a line, and the offset of the first copy in a tile
  u32 extent, end;                    // the number of rows or columns, and the end of k

  template <class Copies>
  SIMT_INLINED void copy(Copies& copies, SharedAt tile, u32 k) const {
    MMA_UNROLL for (int i = 0; i < kCopies; ++i) {
      u32 bytes;
      SIMT_GLOBAL const u8* source;
      if (kAcross) {
        const u32 depth = k + i % kPeriod * kLines;
        bytes = depth + line < end ? chunk_bytes(at + i / kPeriod * UNIT_BLOCK, extent) : 0u;
        source = from + pitch * depth + i / kPeriod * UNIT_LINE;
      } else {
        bytes = at + i * kLines < extent ? chunk_bytes(k + chunk * 8, end) : 0u;
        source = from + pitch * (i * kLines) + 2 * (i64)k;
      }
      copies.add(tile + (target + i * kLines * UNIT_LINE), bytes == 0 ? base : source, bytes);
    }
  }
};
template <bool kAcross, int kExtent, int kThreads>
SIMT_INLINED UnitSource<kAcross, kExtent, kThreads> source_of(const UnitParams& p, int operand, Pointer base,
                                                              const UnitTile& tile, u32 end) {
  UnitSource<kAcross, kExtent, kThreads> out;
  const u32 first = operand == 1 ? tile.row : tile.column;
  out.line = local_id() / 8;
  out.chunk = local_id() % 8;
  out.at = first + (kAcross ? out.chunk * 8 : out.line);
  out.base = base + p.offsets[operand] + 2 * p.batch_strides[operand] * tile.batch;
  out.pitch = 2 * p.pitches[operand];
  out.from = out.base + (kAcross ? out.pitch * out.line + 2 * (i64)out.at : out.pitch * out.at + 16 * out.chunk);
  out.extent = operand == 1 ? p.rows : p.columns;
  out.end = end;
  out.target = out.line * UNIT_LINE + (out.chunk ^ (out.line % 8)) * 16;
  return out;
}

// The matrix in which a group stores its sums: c, or the sums of a split.
struct UnitTarget {
  Pointer base;
  i64 pitch;  // elements
  u32 rows, columns, bytes;
  bool has_pairs, has_chunks;  // true if lines begin at multiples of two elements, and of 16 bytes
};
SIMT_FN UnitTarget target_of(const UnitParams& p, const UnitPointers& at, const UnitTile& tile) {
  UnitTarget out;
  out.rows = p.rows, out.columns = p.columns;
  if (p.splits == 1) {
    out.bytes = p.c_bytes;
    out.pitch = p.pitches[0];
    out.base = at.c + p.offsets[0] + p.batch_strides[0] * tile.batch * out.bytes;
  } else {
    out.bytes = 4;
    out.pitch = p.columns;
    out.base = at.sums + p.offsets[4] + 4 * ((u64)tile.split * p.batches + tile.batch) * p.rows * p.columns;
  }
  const u64 lines = (u64)out.base | (u64)out.pitch * out.bytes;
  out.has_pairs = lines % (2 * out.bytes) == 0;
  out.has_chunks = lines % 16 == 0;
  return out;
}
SIMT_INLINED void put_pair(const UnitTarget& to, u32 row, u32 column, float x, float y) {
  if (row >= to.rows || column >= to.columns) return;
  const bool both = column + 1 < to.columns;
  Pointer at = to.base + (to.pitch * row + column) * to.bytes;
  if (to.bytes == 4) {
    SIMT_GLOBAL u32* const words = (SIMT_GLOBAL u32*)at;
    const u32 low = bits_of_float(x), high = bits_of_float(y);
    if (both && to.has_pairs) {
      *(SIMT_GLOBAL u64*)at = (u64)high << 32 | low;
    } else {
      words[0] = low;
      if (both) words[1] = high;
    }
    return;
  }
  const u32 pair = pair_of<Element>(x, y);
  SIMT_GLOBAL u16* const elements = (SIMT_GLOBAL u16*)at;
  if (both && to.has_pairs) {
    *(SIMT_GLOBAL u32*)at = pair;
  } else {
    elements[0] = (u16)pair;
    if (both) elements[1] = (u16)(pair >> 16);
  }
}
// Stores two elements of each of four blocks of 8 columns from `column`. If possible, the four lanes of a row exchange
// 16-bit elements, so that each lane stores a whole block.
SIMT_INLINED void put_blocks(const UnitTarget& to, u32 row, u32 column, const float (&x)[4], const float (&y)[4]) {
  const u32 quarter = lane() % 4;
  if (to.bytes == 4 || !to.has_chunks) {
    MMA_UNROLL for (u32 j = 0; j < 4; ++j) put_pair(to, row, column + 8 * j + 2 * quarter, x[j], y[j]);
    return;
  }
  u32 v[4];
  MMA_UNROLL for (int j = 0; j < 4; ++j) v[j] = pair_of<Element>(x[j], y[j]);
  const bool odd = (quarter & 1) != 0, high = (quarter & 2) != 0;
  const u32 first = shuffle_xor(odd ? v[0] : v[1], 1), third = shuffle_xor(odd ? v[2] : v[3], 1);
  v[0] = odd ? first : v[0], v[1] = odd ? v[1] : first;
  v[2] = odd ? third : v[2], v[3] = odd ? v[3] : third;
  const u32 low = shuffle_xor(high ? v[0] : v[2], 2), next = shuffle_xor(high ? v[1] : v[3], 2);
  v[0] = high ? low : v[0], v[1] = high ? next : v[1];
  v[2] = high ? v[2] : low, v[3] = high ? v[3] : next;
  column += 8 * quarter;
  if (row >= to.rows || column >= to.columns) return;
  Pointer at = to.base + (to.pitch * row + column) * 2;
  if (column + 8 <= to.columns) {
    store_words(at, v);
    return;
  }
  MMA_UNROLL for (u32 i = 0; i < 8; ++i) {
    if (column + i < to.columns) ((SIMT_GLOBAL u16*)at)[i] = (u16)(v[i / 2] >> 16 * (i % 2));
  }
}

SIMT_FN float finished(const UnitParams& p, Pointer bias, u32 column, float sum) {
  if (p.bias_bytes == 4) {
    sum += float_of_bits(((SIMT_GLOBAL const u32*)(bias + p.offsets[3]))[column]);
  } else if (p.bias_bytes == 2) {
    sum += Element::value(((SIMT_GLOBAL const u16*)(bias + p.offsets[3]))[column]);
  }
  return activated(sum, p.activation);
}

// Adds the bias to the sums of a warp and applies the activation. sums[i] is a line of blocks of 16 x 8 elements, as
// multiply_add_fragments computes them. `column` is the first column of the warp. All threads of a group call this
// function.
template <int kThreads, int kDown, int kBlocks>
SIMT_INLINED void finish(const UnitParams& p, Pointer bias, SIMT_LOCAL u8* shared, u32 column,
                         float (&sums)[kDown][kBlocks][4]) {
  if (p.bias_bytes == 0 && p.activation == 0) return;
  // Each thread moves its sums to shared memory and loops over them. A loop over registers must be unrolled, and
  // would repeat the code of the activation.
  group_barrier();
  SIMT_LOCAL float* const own = (SIMT_LOCAL float*)shared + local_id();
  MMA_UNROLL for (int i = 0; i < kDown * kBlocks * 4; ++i) {
    own[i * kThreads] = sums[i / (4 * kBlocks)][i / 4 % kBlocks][i % 4];
  }
  MMA_ROLLED for (u32 i = 0; i < kDown * kBlocks * 4; ++i) {
    const u32 at = column + i / 4 % kBlocks * 8 + lane() % 4 * 2 + i % 2;
    own[i * kThreads] = finished(p, bias, smaller(at, p.columns - 1), own[i * kThreads]);
  }
  MMA_UNROLL for (int i = 0; i < kDown * kBlocks * 4; ++i) {
    sums[i / (4 * kBlocks)][i / 4 % kBlocks][i % 4] = own[i * kThreads];
  }
}
// Stores the sums of a warp. `row` and `column` are the warp's first row and column.
template <int kDown, int kBlocks>
SIMT_INLINED void store(const UnitTarget& to, u32 row, u32 column, const float (&sums)[kDown][kBlocks][4]) {
  MMA_UNROLL for (int i = 0; i < kDown; ++i) {
    MMA_UNROLL for (int j = 0; j < kBlocks; j += 4) {
      MMA_UNROLL for (int lower = 0; lower < 2; ++lower) {
        float x[4], y[4];
        MMA_UNROLL for (int k = 0; k < 4; ++k) {
          x[k] = sums[i][j + k][2 * lower];
          y[k] = sums[i][j + k][2 * lower + 1];
        }
        put_blocks(to, row + lane() / 4 + i * 16 + 8 * lower, column + 8 * j, x, y);
      }
    }
  }
}

#define UNIT_ADDRESSES Pointer c, Pointer a, Pointer b, Pointer bias, Pointer sums
#define UNIT_POINTERS UNIT_ADDRESSES, UnitParams p
