// SPDX-License-Identifier: Apache-2.0
// Copies of boxes of a matrix to slots of shared memory, and the barriers of the slots. nvcc compiles the functions to
// instructions that exist since sm_90 (cp.async.bulk.tensor and mbarrier). The test driver emulates them.
//
// The last warp of a group is the producer: one of its threads fills slots. The other warps read and release slots. A
// box consists of lines of 128 bytes, whose chunks are permuted as in warpgroup_mma.h. Elements beyond the matrix are
// 0.
#pragma once
#include "warpgroup_mma.h"

#include "gpu_host/unit_params.h"
#include "tensor_map.h"

#if defined(__OPENCL_CPP_VERSION__)

// The tensor maps of a and b.
struct TensorMaps {
  EmulatedTensorMap of[2];
};
// The test driver passes one struct after the 5 addresses. `padding` moves the maps to a multiple of
// TENSOR_MAP_ALIGNMENT in the arguments.
struct TensorParams {
  UnitParams p;
  u64 padding[10];
  TensorMaps maps;
};
#define TENSOR_PARAMS TensorParams both
#define TENSOR_UNPACK           \
  const UnitParams& p = both.p; \
  const TensorMaps& maps = both.maps

// The state of a slot. A copy takes effect only when a warp waits for the slot, so that a missing wait changes results.
// Until then, the destination contains NaN.
struct EmulatedSlot {
  u32 fills, releases;      // how often the slot was filled and released
  u32 arrivals;             // warps that have released the slot in this fill
  u32 missing_bytes;        // bytes that the copies of this fill must still write
  u32 copies, boxes[6][5];  // per copy: operand, x, y and z of the box, offset of the destination
};
template <int kSlots>
struct TensorSlots {
  enum { kBytes = kSlots * sizeof(EmulatedSlot) };
  SIMT_LOCAL EmulatedSlot* slots;
  u32 readers;

  SIMT_FN void start(SIMT_LOCAL u8* memory, u32 warps) {
    slots = (SIMT_LOCAL EmulatedSlot*)memory, readers = warps;
    if (local_id() == 0) {
      for (u32 i = 0; i < kSlots; ++i) {
        slots[i].fills = slots[i].releases = slots[i].arrivals = slots[i].missing_bytes = slots[i].copies = 0;
      }
    }
    group_barrier();
  }
  SIMT_FN bool is_free(u32 slot, u32 parity) const { return slots[slot].releases % 2 == parity; }
  SIMT_FN void begin(u32 slot, u32, u32 bytes) {
    ++slots[slot].fills;
    slots[slot].missing_bytes = bytes;
    slots[slot].copies = 0;
  }
  SIMT_FN void copy(u32 slot, SharedAt to, const TensorMaps& maps, u32 operand, u32 x, u32 y, u32 z) {
    SIMT_LOCAL EmulatedSlot& at = slots[slot];
    const u32 given[5] = {operand, x, y, z, to.offset}, bytes = maps.of[operand].lines * 128;
    for (u32 i = 0; i < 5; ++i) at.boxes[at.copies][i] = given[i];
    ++at.copies;
    at.missing_bytes -= bytes;
    for (u32 i = 0; i < bytes / 4; ++i) ((SIMT_LOCAL u32*)(to.base + to.offset))[i] = 0xFFFFFFFFu;
  }
  // Each warp copies all boxes, because it does not wait for other warps. A GPU would wait forever if the slot has no
  // fill with this parity, or if its copies have another size. Here, the boxes then contain NaN.
  SIMT_FN void wait(u32 slot, u32 parity, SharedAt memory, const TensorMaps& maps) const {
    SIMT_LOCAL const EmulatedSlot& at = slots[slot];
    const bool is_filled = at.fills % 2 != parity && at.missing_bytes == 0;
    for (u32 i = 0; i < at.copies; ++i) {
      const EmulatedTensorMap map = maps.of[at.boxes[i][0]];
      const u32 x = at.boxes[i][1], y = at.boxes[i][2], z = at.boxes[i][3];
      for (u32 k = lane(); k < map.lines * TENSOR_BOX; k += 32) {
        const u32 line = k / TENSOR_BOX, in_line = k % TENSOR_BOX;
        const bool is_inside = x + in_line < map.extents[0] && y + line < map.extents[1] && z < map.extents[2];
        const u64 from = map.address + map.pitches[1] * z + map.pitches[0] * (y + line) + 2 * (u64)(x + in_line);
        u16 element = is_filled ? 0 : 0xFFFF;
        if (is_filled && is_inside) element = *(SIMT_GLOBAL const u16*)from;
        *(SIMT_LOCAL u16*)(memory.base + swizzled<false>(at.boxes[i][4], line, in_line)) = element;
      }
    }
    sub_group_barrier(CLK_LOCAL_MEM_FENCE);
  }
  SIMT_FN void release(u32 slot) {
    sub_group_barrier(CLK_LOCAL_MEM_FENCE);
    if (local_id() < readers * 32 && lane() == 0 && count_one(&slots[slot].arrivals) == readers - 1) {
      slots[slot].arrivals = 0;
      ++slots[slot].releases;
    }
  }
};

template <class Producer, class Slots>
SIMT_FN bool has_produced(Producer&, Slots&, const UnitParams&, const TensorMaps&) {
  return false;
}
template <class Slots>
SIMT_FN bool is_reader(const Slots& slots) {
  return local_id() < slots.readers * 32;
}
// In emulation, the producer cannot run while other work items wait. All threads of the group therefore call this
// function before a step, and the producer then fills all slots that are free.
template <class Producer, class Slots>
SIMT_FN void meet_producer(Producer& producer, Slots& slots, const UnitParams& p, const TensorMaps& maps) {
  group_barrier();
  if (local_id() == slots.readers * 32) {
    while (producer.has_next() && slots.is_free(producer.slot, producer.parity)) producer.fill(slots, p, maps);
  }
  group_barrier();
}

#else

struct alignas(TENSOR_MAP_ALIGNMENT) TensorMaps {
  u8 of[2][TENSOR_MAP_BYTES];
};
// The parameters of a kernel after the addresses. TENSOR_UNPACK begins the body of the kernel.
#define TENSOR_PARAMS const UnitParams p, const __grid_constant__ TensorMaps maps
#define TENSOR_UNPACK

template <int kSlots>
struct TensorSlots {
  enum { kBytes = kSlots * 2 * 8 };
  SharedAt filled, released;  // a barrier of 8 bytes per slot
  u32 readers;                // warps that read each slot

  // Prepares the barriers. All threads of the group call this function.
  SIMT_INLINED void start(u8* memory, u32 warps) {
    filled = shared_at(memory), released = filled + 8 * kSlots, readers = warps;
    if (threadIdx.x == 0) {
      for (u32 i = 0; i < kSlots; ++i) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(filled + 8 * i) : "memory");
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(released + 8 * i), "r"(warps) : "memory");
      }
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    group_barrier();
  }
  static SIMT_INLINED void wait_for(SharedAt barrier, u32 parity) {
    u32 is_done = 0;
    while (is_done == 0) {
      asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}\n"
                   : "=r"(is_done)
                   : "r"(barrier), "r"(parity)
                   : "memory");
    }
  }
  // Waits until all readers have released the slot, and begins to fill it with `bytes` bytes. `parity` is 0 for the
  // first fill of a slot, and alternates from fill to fill.
  SIMT_INLINED void begin(u32 slot, u32 parity, u32 bytes) {
    wait_for(released + 8 * slot, parity ^ 1);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(filled + 8 * slot), "r"(bytes)
                 : "memory");
  }
  // Copies the box that begins at element x of line y of matrix z. `operand` is 0 for a and 1 for b.
  SIMT_INLINED void copy(u32 slot, SharedAt to, const TensorMaps& maps, u32 operand, u32 x, u32 y, u32 z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
        "[%2];" ::"r"(to),
        "l"((u64)maps.of[operand]), "r"(filled + 8 * slot), "r"(x), "r"(y), "r"(z)
        : "memory");
  }
  // Waits until the slot is filled.
  SIMT_INLINED void wait(u32 slot, u32 parity, SharedAt, const TensorMaps&) const {
    wait_for(filled + 8 * slot, parity);
  }
  // Releases a slot that the warp has read.
  SIMT_INLINED void release(u32 slot) {
    if (lane() == 0) {
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(released + 8 * slot) : "memory");
    }
  }
};

// Returns true if the thread belongs to the producer warp. Lane 0 of this warp first fills the slots of all tiles.
template <class Producer, class Slots>
SIMT_INLINED bool has_produced(Producer& producer, Slots& slots, const UnitParams& p, const TensorMaps& maps) {
  if (shuffle_from(subgroup(), 0) != slots.readers) return false;
  if (lane() == 0) {
    while (producer.has_next()) producer.fill(slots, p, maps);
  }
  return true;
}
// Returns whether the thread reads slots. The caller has received false from has_produced().
template <class Slots>
SIMT_INLINED bool is_reader(const Slots&) {
  return true;
}
template <class Producer, class Slots>
SIMT_INLINED void meet_producer(Producer&, Slots&, const UnitParams&, const TensorMaps&) {}

#endif
