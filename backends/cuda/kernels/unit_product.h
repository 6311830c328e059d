// SPDX-License-Identifier: Apache-2.0
// Matrix products of f16 or bf16 with the instructions of warps. With split-K, a second launch adds the sums of the
// splits. Both launches add in a fixed order.
#include "unit_tile.h"

// Loads a fragment of 16 x 16 elements of a (if `kLeft`) or b. Its first row of a or column of b is `at`, and its
// first element of k is 16 * `step`.
template <bool kAcross, bool kLeft>
SIMT_INLINED void load_fragment(u32 (&out)[4], SharedAt tile, u32 at, u32 step) {
  // These values are computed again for each fragment, because registers for them would spill others.
  const u32 in_eight = opaque(lane()) % 8, second = opaque(lane()) / 8 % 2, last = opaque(lane()) / 16;
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

// A warp computes kWarpRows x kWarpColumns elements of a tile.
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
    group_barrier();  // all threads' copies of this step have ended, and no warp reads the slot of the previous step
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

  const u32 row = tile.row + warp_row, column = tile.column + warp_column;
  if (p.splits == 1) finish<kThreads, kDown, 2 * kRight>(p, at.bias, shared, column, sums);
  store<kDown, 2 * kRight>(target_of(p, at, tile), row, column, sums);
}

// The kernels of one size of tiles. The suffix names the contiguous index of a (k or m) and of b (k or n). The host's
// table of tiles (runtime/units.cpp) has the same numbers.
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
