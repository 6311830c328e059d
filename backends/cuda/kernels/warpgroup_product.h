// SPDX-License-Identifier: Apache-2.0
// Matrix products of f16 or bf16 with the instructions of warpgroups, which read a and b from shared memory.
#include "unit_tile.h"
#include "warpgroup_mma.h"

// A warpgroup computes WARPGROUP_ROWS rows of a tile. Copies run kStages - 2 steps ahead, because products still read
// the slot of the previous step when the copies of a later step begin.
template <int kRows, int kColumns, int kStages, bool kAcrossA, bool kAcrossB>
SIMT_INLINED void warpgroup_product(const UnitParams& p, const UnitPointers& at, SIMT_LOCAL u8* shared) {
  enum {
    kThreads = kRows / WARPGROUP_ROWS * WARPGROUP,
    kSlot = (kRows + kColumns) * UNIT_LINE,
    kAhead = kStages - 2,
    kInstructions = UNIT_DEPTH / WARPGROUP_DEPTH
  };
  typedef SharedCopies<(kAhead + 1) * (kRows + kColumns) * 8 / kThreads> Copies;
  typedef WarpgroupProducts<Element, kColumns, kAcrossA, kAcrossB, 2 * kInstructions> Products;
  const UnitTile tile = tile_of(p, group_id(), kRows, kColumns);
  const u32 begin = tile.split * p.split_depth, end = smaller(p.depth, begin + p.split_depth);
  const u32 steps = (end - begin + UNIT_DEPTH - 1) / UNIT_DEPTH;
  const UnitSource<kAcrossA, kRows, kThreads> a = source_of<kAcrossA, kRows, kThreads>(p, 1, at.a, tile, end);
  const UnitSource<kAcrossB, kColumns, kThreads> b = source_of<kAcrossB, kColumns, kThreads>(p, 2, at.b, tile, end);
  const SharedAt slots = lines_at(shared);
  Copies copies;
  MMA_UNROLL for (u32 s = 0; s < kAhead; ++s) {
    if (s < steps) {
      a.copy(copies, slots + s * kSlot, begin + s * UNIT_DEPTH);
      b.copy(copies, slots + (s * kSlot + kRows * UNIT_LINE), begin + s * UNIT_DEPTH);
    }
    copies.commit();
  }

  const u32 first_row = warpgroup() * WARPGROUP_ROWS;
  Products products;
  products.start();
  u32 slot = 0, next = kAhead;
  for (u32 step = 0; step < steps; ++step) {
    wait_for_products<kAhead - 1>(copies);
    group_barrier();  // all copies of this step, and the products of the step before the previous one, have ended
    const SharedAt left = slots + (slot * kSlot + first_row * UNIT_LINE),
                   right = slots + (slot * kSlot + kRows * UNIT_LINE);
    products.fence();
    MMA_UNROLL for (u32 i = 0; i < kInstructions; ++i) {
      products.add(left + i * WARPGROUP_STEP(kAcrossA), right + i * WARPGROUP_STEP(kAcrossB));
    }
    products.commit();
    if (step + kAhead < steps) {
      const u32 k = begin + (step + kAhead) * UNIT_DEPTH;
      a.copy(copies, slots + next * kSlot, k);
      b.copy(copies, slots + (next * kSlot + kRows * UNIT_LINE), k);
    }
    copies.commit();
    products.template wait<1>();  // waits for the products of the previous step
    slot = slot + 1 == kStages ? 0 : slot + 1;
    next = next + 1 == kStages ? 0 : next + 1;
  }
  products.template wait<0>();

  const u32 row = tile.row + first_row + subgroup() % 4 * 16;
  if (p.splits == 1) finish<kThreads, 1, kColumns / 8>(p, at.bias, shared, tile.column, products.sums);
  store<1, kColumns / 8>(target_of(p, at, tile), row, tile.column, products.sums);
}

// The kernels of one size of tiles. The suffix names the contiguous index of a (k or m) and of b (k or n). The host's
// table of tiles (runtime/units.cpp) has the same numbers.
#define WARPGROUP_KERNEL(rows, columns, suffix, stages, threads, groups, across_a, across_b)     \
  MMA_KERNEL(unit_##rows##x##columns##_##suffix, threads, groups)(UNIT_POINTERS) {               \
    MMA_SHARED(shared, (rows + columns) * UNIT_LINE * stages);                                   \
    const UnitPointers at = {c, a, b, bias, sums};                                               \
    warpgroup_product<rows, columns, stages, across_a, across_b>(p, at, (SIMT_LOCAL u8*)shared); \
  }
#define WARPGROUP_TILE(rows, columns, stages, threads, groups)               \
  WARPGROUP_KERNEL(rows, columns, kk, stages, threads, groups, false, false) \
  WARPGROUP_KERNEL(rows, columns, kn, stages, threads, groups, false, true)  \
  WARPGROUP_KERNEL(rows, columns, mk, stages, threads, groups, true, false)  \
  WARPGROUP_KERNEL(rows, columns, mn, stages, threads, groups, true, true)
WARPGROUP_TILE(128, 256, 4, 256, 1)
WARPGROUP_TILE(64, 64, 4, 128, 3)
