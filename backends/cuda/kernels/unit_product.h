// SPDX-License-Identifier: Apache-2.0
// Matrix products of f16 or bf16 on matrix units, with sums in f32. A group computes a tile of c. Copies to shared
// memory run ahead of the products by several steps of k. A tile of a or b consists of lines of 128 bytes. Chunks of 16
// bytes are permuted within each line, so that the rows of a matrix that a warp loads are in different banks.
//
// With split-K, a second launch adds the sums of the splits. Both launches add in a fixed order.
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

// The bytes of the 8 elements from `at` that are below `end`.
SIMT_FN u32 chunk_bytes(u32 at, u32 end) { return at >= end ? 0u : smaller((end - at) * 2, 16u); }

// The copies of a thread for tiles of a or b. If `kAcross` is false, a line contains UNIT_BLOCK elements along k of a
// row of a or a column of b. Otherwise it contains UNIT_BLOCK rows or columns of one k, and the next UNIT_DEPTH lines
// contain the next rows or columns.
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

// Loads a fragment of 16 x 16 elements, whose first row of a or column of b is `at`, and whose first element of k is
// 16 * `step`. `kLeft` states that the fragment is of a.
template <bool kAcross, bool kLeft>
SIMT_INLINED void load_fragment(u32 (&out)[4], SharedAt tile, u32 at, u32 step) {
  const u32 in_eight = lane() % 8, second = lane() / 8 % 2, last = lane() / 16;
  const u32 along = kLeft ? last : second,
            across = kLeft ? second : last;  // offsets of the lane's matrix, in 8 elements
  if (kAcross) {
    const u32 chunk = at / 8 + across, line = chunk / 8 * UNIT_DEPTH + step * 16 + along * 8 + in_eight;
    load_transposed(out, tile + (line * UNIT_LINE + (chunk % 8 ^ in_eight) * 16));
  } else {
    const u32 line = at + across * 8 + in_eight, chunk = step * 2 + along;
    load_matrices(out, tile + (line * UNIT_LINE + (chunk ^ in_eight) * 16));
  }
}

// Where a group stores its sums.
struct UnitTarget {
  Pointer base;
  i64 pitch;  // elements
  u32 rows, columns, bytes;
  bool has_pairs, has_chunks;  // addresses of lines are multiples of two elements, or of 16 bytes
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

// A warp computes kWarpRows x kWarpColumns of a tile.
template <int kRows, int kColumns, int kWarpRows, int kWarpColumns, int kStages, bool kAcrossA, bool kAcrossB>
SIMT_INLINED void unit_product(const UnitParams& p, const UnitPointers& at, SIMT_LOCAL u8* shared) {
  enum {
    kWarpsDown = kRows / kWarpRows,
    kThreads = kWarpsDown * (kColumns / kWarpColumns) * 32,
    kSlot = (kRows + kColumns) * UNIT_LINE,
    kDown = kWarpRows / 16,
    kRight = kWarpColumns / 16
  };
  typedef SharedCopies<(kStages - 1) * (kRows + kColumns) * 8 / kThreads> Copies;
  const UnitTile tile = tile_of(p, group_id(), kRows, kColumns);
  const u32 begin = tile.split * p.split_depth, end = smaller(p.depth, begin + p.split_depth);
  const u32 steps = (end - begin + UNIT_DEPTH - 1) / UNIT_DEPTH;
  const u32 warp_row = subgroup() % kWarpsDown * kWarpRows, warp_column = subgroup() / kWarpsDown * kWarpColumns;
  const UnitSource<kAcrossA, kRows, kThreads> a = source_of<kAcrossA, kRows, kThreads>(p, 1, at.a, tile, end);
  const UnitSource<kAcrossB, kColumns, kThreads> b = source_of<kAcrossB, kColumns, kThreads>(p, 2, at.b, tile, end);
  const SharedAt slots = shared_at(shared);
  Copies copies;
  MMA_UNROLL for (u32 s = 0; s < kStages - 1; ++s) {
    if (s < steps) {
      a.copy(copies, slots + s * kSlot, begin + s * UNIT_DEPTH);
      b.copy(copies, slots + (s * kSlot + kRows * UNIT_LINE), begin + s * UNIT_DEPTH);
    }
    copies.commit();
  }

  float sums[kDown][2 * kRight][4];
  MMA_UNROLL for (int i = 0; i < kDown; ++i) {
    MMA_UNROLL for (int j = 0; j < 2 * kRight; ++j) { MMA_UNROLL for (int e = 0; e < 4; ++e) sums[i][j][e] = 0.0f; }
  }
  u32 slot = 0, next = kStages - 1;
  for (u32 step = 0; step < steps; ++step) {
    copies.template wait<kStages - 2>();
    group_barrier();  // all threads' copies of this step have ended, and no warp reads the slot of the last step
    if (step + kStages - 1 < steps) {
      const u32 k = begin + (step + kStages - 1) * UNIT_DEPTH;
      a.copy(copies, slots + next * kSlot, k);
      b.copy(copies, slots + (next * kSlot + kRows * UNIT_LINE), k);
    }
    copies.commit();
    const SharedAt left = slots + slot * kSlot, right = left + kRows * UNIT_LINE;
    MMA_UNROLL for (u32 sixteen = 0; sixteen < UNIT_DEPTH / 16; ++sixteen) {
      u32 rows[kDown][4], columns[kRight][4];
      MMA_UNROLL for (int i = 0; i < kDown; ++i) {
        load_fragment<kAcrossA, true>(rows[i], left, warp_row + i * 16, sixteen);
      }
      MMA_UNROLL for (int j = 0; j < kRight; ++j) {
        load_fragment<kAcrossB, false>(columns[j], right, warp_column + j * 16, sixteen);
      }
      MMA_UNROLL for (int i = 0; i < kDown; ++i) {
        MMA_UNROLL for (int j = 0; j < kRight; ++j) {
          multiply_add_fragments<Element>(sums[i][2 * j], rows[i], columns[j][0], columns[j][1]);
          multiply_add_fragments<Element>(sums[i][2 * j + 1], rows[i], columns[j][2], columns[j][3]);
        }
      }
    }
    slot = slot + 1 == kStages ? 0 : slot + 1;
    next = next + 1 == kStages ? 0 : next + 1;
  }

  const u32 row = tile.row + warp_row + lane() / 4, column = tile.column + warp_column;
  if (p.splits == 1 && (p.bias_bytes != 0 || p.activation != 0)) {
    // Each thread moves its sums to shared memory, because a loop over registers would repeat the code of activations.
    group_barrier();
    SIMT_LOCAL float* const own = (SIMT_LOCAL float*)shared + local_id();
    MMA_UNROLL for (int i = 0; i < kDown * 2 * kRight * 4; ++i) {
      own[i * kThreads] = sums[i / (8 * kRight)][i / 4 % (2 * kRight)][i % 4];
    }
    MMA_ROLLED for (u32 i = 0; i < kDown * 2 * kRight * 4; ++i) {
      const u32 at_column = column + i / 4 % (2 * kRight) * 8 + lane() % 4 * 2 + i % 2;
      own[i * kThreads] = finished(p, at.bias, smaller(at_column, p.columns - 1), own[i * kThreads]);
    }
    MMA_UNROLL for (int i = 0; i < kDown * 2 * kRight * 4; ++i) {
      sums[i / (8 * kRight)][i / 4 % (2 * kRight)][i % 4] = own[i * kThreads];
    }
  }
  const UnitTarget to = target_of(p, at, tile);
  MMA_UNROLL for (int i = 0; i < kDown; ++i) {
    MMA_UNROLL for (int j = 0; j < 2 * kRight; j += 4) {
      MMA_UNROLL for (int lower = 0; lower < 2; ++lower) {
        float x[4], y[4];
        MMA_UNROLL for (int k = 0; k < 4; ++k) {
          x[k] = sums[i][j + k][2 * lower];
          y[k] = sums[i][j + k][2 * lower + 1];
        }
        put_blocks(to, row + i * 16 + 8 * lower, column + 8 * j, x, y);
      }
    }
  }
}

#define UNIT_POINTERS Pointer c, Pointer a, Pointer b, Pointer bias, Pointer sums, UnitParams p
// The kernels of a tile. The suffix contains the contiguous index of a and of b. The host's table of tiles
// (runtime/units.cpp) has the same numbers.
#define UNIT_KERNEL(rows, columns, suffix, warp_rows, warp_columns, stages, threads, groups, across_a, across_b)     \
  MMA_KERNEL(unit_##rows##x##columns##_##suffix, threads, groups)(UNIT_POINTERS) {                                   \
    MMA_SHARED(shared, (rows + columns) * UNIT_LINE * stages);                                                       \
    const UnitPointers at = {c, a, b, bias, sums};                                                                   \
    unit_product<rows, columns, warp_rows, warp_columns, stages, across_a, across_b>(p, at, (SIMT_LOCAL u8*)shared); \
  }
#define UNIT_TILE(rows, columns, warp_rows, warp_columns, stages, threads, groups)               \
  UNIT_KERNEL(rows, columns, kk, warp_rows, warp_columns, stages, threads, groups, false, false) \
  UNIT_KERNEL(rows, columns, kn, warp_rows, warp_columns, stages, threads, groups, false, true)  \
  UNIT_KERNEL(rows, columns, mk, warp_rows, warp_columns, stages, threads, groups, true, false)  \
  UNIT_KERNEL(rows, columns, mn, warp_rows, warp_columns, stages, threads, groups, true, true)
UNIT_TILE(128, 256, 64, 64, 3, 256, 1)
UNIT_TILE(128, 128, 64, 32, 3, 256, 2)
UNIT_TILE(64, 64, 32, 32, 4, 128, 3)

// Adds the sums of the splits.
SIMT_KERNEL(unit_combine)(UNIT_POINTERS) {
  (void)a, (void)b;
  const u64 count = (u64)p.batches * p.rows * p.columns;
  for (u64 i = global_id(); i < count; i += global_size()) {
    const u64 line = i / p.columns, batch = line / p.rows;
    const u32 column = (u32)(i - line * p.columns), row = (u32)(line - batch * p.rows);
    SIMT_GLOBAL const float* const from = (SIMT_GLOBAL const float*)(sums + p.offsets[4]);
    float sum = 0.0f;
    for (u32 split = 0; split < p.splits; ++split) sum += from[count * split + i];
    sum = finished(p, bias, column, sum);
    const i64 to = p.batch_strides[0] * (i64)batch + p.pitches[0] * row + column;
    if (p.c_bytes == 4) {
      ((SIMT_GLOBAL float*)(c + p.offsets[0]))[to] = sum;
    } else {
      ((SIMT_GLOBAL u16*)(c + p.offsets[0]))[to] = (u16)Element::bits(sum);
    }
  }
}
