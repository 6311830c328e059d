// SPDX-License-Identifier: Apache-2.0
// Matrix products of f16 or bf16 with the instructions of warpgroups. Tensor maps describe a and b, and one thread
// copies whole tiles. A group computes tiles one after another. During each tile, it already copies the operands of
// the next tile.
#include "tensor_combine.h"
#include "tensor_copy.h"

// Fills the slots with the operands of a group's tiles, in the order in which the readers need them.
template <int kRows, int kColumns, int kSlots, bool kAcrossA, bool kAcrossB>
struct TensorProducer {
  enum { kSlot = (kRows + kColumns) * UNIT_LINE };
  SharedAt memory;
  u32 index, tiles, k, end, slot, parity;
  UnitTile tile;

  SIMT_INLINED void start(const UnitParams& p, SharedAt at, u32 count) {
    memory = at, index = group_id(), tiles = count, slot = 0, parity = 0;
    begin_tile(p);
  }
  SIMT_INLINED void begin_tile(const UnitParams& p) {
    tile = tile_of(p, index, kRows, kColumns);
    k = tile.split * p.split_depth, end = smaller(p.depth, k + p.split_depth);
  }
  SIMT_INLINED bool has_next() const { return index < tiles; }
  // Fills one slot.
  template <class Slots>
  SIMT_INLINED void fill(Slots& slots, const UnitParams& p, const TensorMaps& maps) {
    slots.begin(slot, parity, kSlot);
    const SharedAt left = memory + slot * kSlot, right = left + kRows * UNIT_LINE;
    copy<kAcrossA, kRows>(slots, left, maps, 0, tile.row, p.batch_strides[1] == 0 ? 0 : tile.batch);
    copy<kAcrossB, kColumns>(slots, right, maps, 1, tile.column, p.batch_strides[2] == 0 ? 0 : tile.batch);
    slot = slot + 1 == kSlots ? 0 : slot + 1;
    parity ^= slot == 0 ? 1 : 0;
    k += UNIT_DEPTH;
    if (k < end) return;
    index += group_count();
    begin_tile(p);
  }
  // Copies kExtent rows of a or columns of b, from `first` on, for one step of k.
  template <bool kAcross, int kExtent, class Slots>
  SIMT_INLINED void copy(Slots& slots, SharedAt to, const TensorMaps& maps, u32 operand, u32 first, u32 batch) const {
    if constexpr (kAcross) {
      MMA_UNROLL for (u32 i = 0; i < kExtent / TENSOR_BOX; ++i) {
        slots.copy(slot, to + i * UNIT_DEPTH * UNIT_LINE, maps, operand, first + i * TENSOR_BOX, k, batch);
      }
    } else {
      slots.copy(slot, to, maps, operand, k, first, batch);
    }
  }
};

// Adds the bias and applies the activation like finish(), in parts of kPart sums per thread. No thread waits for
// others. `shared` has room for kThreads * kPart sums, and `thread` is below kThreads.
template <int kThreads, int kPart, int kBlocks>
SIMT_INLINED void finish_parts(const UnitParams& p, Pointer bias, SIMT_LOCAL u8* shared, u32 thread, u32 column,
                               float (&sums)[1][kBlocks][4]) {
  if (p.bias_bytes == 0 && p.activation == 0) return;
  SIMT_LOCAL float* const own = (SIMT_LOCAL float*)shared + thread;
  MMA_UNROLL for (int first = 0; first < kBlocks * 4; first += kPart) {
    MMA_UNROLL for (int k = 0; k < kPart; ++k) {
      const int i = first + k;
      own[k * kThreads] = sums[0][i / 4][i % 4];
    }
    MMA_ROLLED for (u32 k = 0; k < kPart; ++k) {
      const u32 i = first + k, at = column + i / 4 * 8 + lane() % 4 * 2 + i % 2;
      own[k * kThreads] = finished(p, bias, smaller(at, p.columns - 1), own[k * kThreads]);
    }
    MMA_UNROLL for (int k = 0; k < kPart; ++k) {
      const int i = first + k;
      sums[0][i / 4][i % 4] = own[k * kThreads];
    }
  }
}

// Each warpgroup computes WARPGROUP_ROWS rows of a tile.
template <int kRows, int kColumns, int kSlots, int kPart, bool kAcrossA, bool kAcrossB>
SIMT_INLINED void tensor_product(const UnitParams& p, const UnitPointers& at, const TensorMaps& maps,
                                 SIMT_LOCAL u8* shared) {
  enum {
    kReaders = kRows / WARPGROUP_ROWS * WARPGROUP,
    kSlot = (kRows + kColumns) * UNIT_LINE,
    kInstructions = UNIT_DEPTH / WARPGROUP_DEPTH
  };
  typedef WarpgroupProducts<Element, kColumns, kAcrossA, kAcrossB, 2 * kInstructions> Products;
  const u32 tiles = p.row_tiles * p.column_tiles * p.batches * p.splits;
  SIMT_LOCAL u8* const barriers = shared + kReaders * kPart * 4;
  const SharedAt memory = lines_at(barriers + TensorSlots<kSlots>::kBytes);
  TensorSlots<kSlots> slots;
  slots.start(barriers, kReaders / 32);
  TensorProducer<kRows, kColumns, kSlots, kAcrossA, kAcrossB> producer;
  producer.start(p, memory, tiles);
  if (has_produced(producer, slots, p, maps)) return;

  const u32 first_row = is_reader(slots) ? warpgroup() * WARPGROUP_ROWS : 0;
  u32 slot = 0, parity = 0;
  for (u32 index = group_id(); index < tiles; index += group_count()) {
    const UnitTile tile = tile_of(p, index, kRows, kColumns);
    const u32 begin = tile.split * p.split_depth, end = smaller(p.depth, begin + p.split_depth);
    Products products;
    products.start();
    u32 last = 0;
    for (u32 k = begin; k < end; k += UNIT_DEPTH) {
      meet_producer(producer, slots, p, maps);
      slots.wait(slot, parity, memory, maps);
      const SharedAt left = memory + (slot * kSlot + first_row * UNIT_LINE),
                     right = memory + (slot * kSlot + kRows * UNIT_LINE);
      products.fence();
      MMA_UNROLL for (u32 i = 0; i < kInstructions; ++i) {
        products.add(left + i * WARPGROUP_STEP(kAcrossA), right + i * WARPGROUP_STEP(kAcrossB));
      }
      products.commit();
      products.template wait<1>();  // waits for the products of the previous step
      if (k != begin) slots.release(last);
      last = slot;
      slot = slot + 1 == kSlots ? 0 : slot + 1;
      parity ^= slot == 0 ? 1 : 0;
    }
    products.template wait<0>();
    slots.release(last);
    if (is_reader(slots)) {
      if (p.splits == 1) {
        finish_parts<kReaders, kPart, kColumns / 8>(p, at.bias, shared, local_id(), tile.column, products.sums);
      }
      const u32 row = tile.row + first_row + subgroup() % 4 * 16;
      store<1, kColumns / 8>(target_of(p, at, tile), row, tile.column, products.sums);
    }
  }
}

// The kernels of one size of tiles. The suffix names the contiguous index of a (k or m) and of b (k or n). The host's
// table of tiles (runtime/units.cpp) has the same numbers.
#define TENSOR_KERNEL(rows, columns, suffix, slots, part, threads, groups, across_a, across_b)           \
  MMA_KERNEL(unit_##rows##x##columns##_##suffix, threads, groups)(UNIT_ADDRESSES, TENSOR_PARAMS) {       \
    TENSOR_UNPACK;                                                                                       \
    MMA_SHARED(shared, TENSOR_BYTES(rows, columns, slots, part));                                        \
    const UnitPointers at = {c, a, b, bias, sums};                                                       \
    tensor_product<rows, columns, slots, part, across_a, across_b>(p, at, maps, (SIMT_LOCAL u8*)shared); \
  }
#define TENSOR_BYTES(rows, columns, slots, part) \
  (rows * 2 * part * 4 + TensorSlots<slots>::kBytes + (rows + columns) * UNIT_LINE * slots)
#define TENSOR_TILE(rows, columns, slots, part, threads, groups)               \
  TENSOR_KERNEL(rows, columns, kk, slots, part, threads, groups, false, false) \
  TENSOR_KERNEL(rows, columns, kn, slots, part, threads, groups, false, true)  \
  TENSOR_KERNEL(rows, columns, mk, slots, part, threads, groups, true, false)  \
  TENSOR_KERNEL(rows, columns, mn, slots, part, threads, groups, true, true)
TENSOR_TILE(128, 256, 4, 32, 288, 1)
TENSOR_TILE(128, 192, 5, 24, 288, 1)
TENSOR_TILE(128, 128, 6, 32, 288, 1)
TENSOR_TILE(64, 128, 4, 16, 160, 2)
