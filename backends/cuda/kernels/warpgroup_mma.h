// SPDX-License-Identifier: Apache-2.0
// Functions of warpgroups for products whose operands are in shared memory. A warpgroup consists of four adjacent
// warps. nvcc compiles the functions to instructions that exist only for sm_90a (wgmma). The test driver emulates them,
// with the layouts that the documentation of PTX states.
//
// All threads of a warpgroup call a function together. A tile of an operand consists of lines of 128 bytes from a
// multiple of 1024 bytes. In line l, chunk c of 16 bytes is stored as chunk c ^ (l % 8). If `kAcross` is false, a
// line has 64 elements along k of a row of a or of a column of b. Otherwise a line has the elements of 64 rows or
// columns for one k. The lines of 64 values of k are followed by the lines of the next 64 rows or columns.
#pragma once
#include "warp_mma.h"

#define WARPGROUP 128       // threads
#define WARPGROUP_ROWS 64   // rows of a product
#define WARPGROUP_DEPTH 16  // elements of k of a product
// The bytes from the operand of a product to the operand of the next product along k.
#define WARPGROUP_STEP(across) ((across) ? WARPGROUP_DEPTH * 128 : WARPGROUP_DEPTH * 2)

// lines_at rounds an address up to a multiple of 1024 bytes, so a launch requests 1024 more bytes of shared memory.
#define WARPGROUP_ALIGNMENT 1024
#if defined(__OPENCL_CPP_VERSION__)

SIMT_FN u32 warpgroup() { return local_id() / WARPGROUP; }
// In emulation, the order of chunks depends on the offset in the memory, so the memory need not be aligned.
SIMT_FN SharedAt lines_at(SIMT_LOCAL u8* base) { return shared_at(base); }

// Waits like SharedCopies::wait. Products that begin after the next barrier may then read the copies.
template <int kPending, class Copies>
SIMT_FN void wait_for_products(Copies& copies) {
  copies.template wait<kPending>();
}

// Returns the offset in bytes of element `k` of row `across` of a, or of column `across` of b, in the operand at
// offset `at`.
template <bool kAcross>
SIMT_FN u32 swizzled(u32 at, u32 across, u32 k) {
  const u32 line = kAcross ? across / 64 * 64 + k : across, in_line = kAcross ? across % 64 : k;
  const u32 plain = at + line * 128 + in_line * 2;
  return plain ^ (plain >> 7 & 7) << 4;
}

// The products of a warpgroup. A product takes effect only when the threads wait for it, so that a missing wait
// changes results. If the operands change before that wait, or if no fence precedes the product, the result is NaN.
template <class T, int kColumns, bool kAcrossA, bool kAcrossB, int kMost>
struct WarpgroupProducts {
  float sums[1][kColumns / 8][4];
  SharedAt left[kMost], right[kMost];
  u32 group[kMost], words[kMost];
  u32 first, count, groups;
  bool is_fenced;

  SIMT_FN void start() {
    first = 0, count = 0, groups = 0, is_fenced = false;
    for (u32 j = 0; j < kColumns / 8; ++j) {
      for (u32 e = 0; e < 4; ++e) sums[0][j][e] = 0.0f;
    }
  }
  SIMT_FN void fence() { is_fenced = true; }
  SIMT_FN void add(SharedAt a, SharedAt b) {
    const u32 i = (first + count) % (u32)kMost;
    left[i] = a, right[i] = b, group[i] = groups, words[i] = words_of(a, b) + (is_fenced ? 0u : 1u);
    ++count;
  }
  SIMT_FN void commit() { ++groups; }
  template <int kPending>
  SIMT_FN void wait() {
    while (count != 0 && group[first] + kPending < groups) {
      compute(left[first], right[first]);
      if (words[first] != words_of(left[first], right[first])) {
        for (u32 j = 0; j < kColumns / 8; ++j) {
          for (u32 e = 0; e < 4; ++e) sums[0][j][e] = float_of_bits(0x7FC00000u);
        }
      }
      first = (first + 1) % (u32)kMost;
      --count;
    }
    is_fenced = false;
  }

  // Returns a checksum of the thread's part of the operands. The wait compares it with the checksum at that time.
  SIMT_FN u32 words_of(SharedAt a, SharedAt b) {
    const u32 t = local_id() % WARPGROUP;
    u32 out = 0;
    for (u32 i = t; i < WARPGROUP_ROWS * WARPGROUP_DEPTH; i += WARPGROUP) {
      out = out * 31 + *(SIMT_LOCAL const u16*)(a.base + swizzled<kAcrossA>(a.offset, i / 16, i % 16));
    }
    for (u32 i = t; i < kColumns * WARPGROUP_DEPTH; i += WARPGROUP) {
      out = out * 31 + *(SIMT_LOCAL const u16*)(b.base + swizzled<kAcrossB>(b.offset, i / 16, i % 16));
    }
    return out;
  }
  SIMT_FN void compute(SharedAt a, SharedAt b) {
    const u32 row = local_id() % WARPGROUP / 32 * 16 + lane() / 4;
    float upper[WARPGROUP_DEPTH], lower[WARPGROUP_DEPTH];
    for (u32 k = 0; k < WARPGROUP_DEPTH; ++k) {
      upper[k] = T::value(*(SIMT_LOCAL const u16*)(a.base + swizzled<kAcrossA>(a.offset, row, k)));
      lower[k] = T::value(*(SIMT_LOCAL const u16*)(a.base + swizzled<kAcrossA>(a.offset, row + 8, k)));
    }
    for (u32 j = 0; j < kColumns / 8; ++j) {
      for (u32 e = 0; e < 2; ++e) {
        const u32 column = j * 8 + lane() % 4 * 2 + e;
        for (u32 k = 0; k < WARPGROUP_DEPTH; ++k) {
          const float x = T::value(*(SIMT_LOCAL const u16*)(b.base + swizzled<kAcrossB>(b.offset, column, k)));
          sums[0][j][e] += upper[k] * x;
          sums[0][j][2 + e] += lower[k] * x;
        }
      }
    }
  }
};

#else

// The shuffle lets the compiler see that all threads of a warp have the same value.
SIMT_INLINED u32 warpgroup() { return shuffle_from(threadIdx.x / WARPGROUP, 0); }
SIMT_INLINED SharedAt lines_at(u8* base) {
  return (shared_at(base) + WARPGROUP_ALIGNMENT - 1) / WARPGROUP_ALIGNMENT * WARPGROUP_ALIGNMENT;
}

template <int kPending, class Copies>
SIMT_INLINED void wait_for_products(Copies& copies) {
  copies.template wait<kPending>();
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Returns the descriptor of an operand: the swizzle of 128 bytes, the strides of 8 lines and of 64 lines, and the
// address. Strides and address are in units of 16 bytes.
SIMT_INLINED u64 descriptor_of(SharedAt at) {
  return (u64)1 << 62 | (u64)(8 * 128 / 16) << 32 | (u64)(64 * 128 / 16) << 16 | (at & 0x3FFFF) >> 4;
}

// The registers of an instruction's sums: WG_NUMBERS_* are their operand numbers, and WG_NAMES_* are the operands.
#define WG_TENS(t, rest) "%" t "0, %" t "1, %" t "2, %" t "3, %" t "4, %" t "5, %" t "6, %" t "7, %" t "8, %" t "9" rest
#define WG_30(rest) WG_TENS("", ", ") WG_TENS("1", ", ") WG_TENS("2", rest)
#define WG_60(rest) WG_30(", ") WG_TENS("3", ", ") WG_TENS("4", ", ") WG_TENS("5", rest)
#define WG_120(rest) \
  WG_60(", ")        \
  WG_TENS("6", ", ") WG_TENS("7", ", ") WG_TENS("8", ", ") WG_TENS("9", ", ") WG_TENS("10", ", ") WG_TENS("11", rest)
#define WG_NUMBERS_32 WG_30(", %30, %31")
#define WG_NUMBERS_64 WG_60(", %60, %61, %62, %63")
#define WG_NUMBERS_96 \
  WG_60(", ") WG_TENS("6", ", ") WG_TENS("7", ", ") WG_TENS("8", ", ") "%90, %91, %92, %93, %94, %95"
#define WG_NUMBERS_128 WG_120(", %120, %121, %122, %123, %124, %125, %126, %127")
#define WG_4(d, j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define WG_16(d, j) WG_4(d, j), WG_4(d, j + 1), WG_4(d, j + 2), WG_4(d, j + 3)
#define WG_NAMES_32(d, j) WG_16(d, j), WG_16(d, j + 4)
#define WG_NAMES_64(d, j) WG_NAMES_32(d, j), WG_NAMES_32(d, j + 8)
#define WG_NAMES_96(d, j) WG_NAMES_64(d, j), WG_NAMES_32(d, j + 16)
#define WG_NAMES_128(d, j) WG_NAMES_64(d, j), WG_NAMES_64(d, j + 16)

template <class T, int kColumns, bool kAcrossA, bool kAcrossB>
struct WarpgroupInstruction;
// `a` and `b` are the operand numbers of the descriptors of a and b, and `x` and `y` are the operand numbers of their
// layouts. `adds` is the operand number of the flag by which the instruction adds to the sums.
#define WG_INSTRUCTION(T, type, columns, registers, a, b, x, y, adds)                                                \
  template <bool kAcrossA, bool kAcrossB>                                                                            \
  struct WarpgroupInstruction<T, columns, kAcrossA, kAcrossB> {                                                      \
    static SIMT_INLINED void add(float (&d)[columns / 8][4], u64 left, u64 right) {                                  \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #adds                                                        \
                   ", 0;\n"                                                                                          \
                   "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." type "." type " {" WG_NUMBERS_##registers \
                   "}, %" #a ", %" #b ", p, 1, 1, %" #x ", %" #y ";\n}\n"                                            \
                   : WG_NAMES_##registers(d, 0)                                                                      \
                   : "l"(left), "l"(right), "n"((int)kAcrossA), "n"((int)kAcrossB), "r"(1));                         \
    }                                                                                                                \
  };
#define WG_INSTRUCTIONS(T, type)                        \
  WG_INSTRUCTION(T, type, 64, 32, 32, 33, 34, 35, 36)   \
  WG_INSTRUCTION(T, type, 128, 64, 64, 65, 66, 67, 68)  \
  WG_INSTRUCTION(T, type, 192, 96, 96, 97, 98, 99, 100) \
  WG_INSTRUCTION(T, type, 256, 128, 128, 129, 130, 131, 132)
WG_INSTRUCTIONS(F16, "f16")
WG_INSTRUCTIONS(BF16, "bf16")

template <class T, int kColumns, bool kAcrossA, bool kAcrossB, int kMost>
struct WarpgroupProducts {
  // The sums of the warpgroup's rows. Each warp has 16 rows, in which a thread has the elements that
  // multiply_add_fragments describes. The sums are defined after a wait for all products.
  float sums[1][kColumns / 8][4];

  // Sets the sums to 0.
  SIMT_INLINED void start() {
    MMA_UNROLL for (int j = 0; j < kColumns / 8; ++j) { MMA_UNROLL for (int e = 0; e < 4; ++e) sums[0][j][e] = 0.0f; }
  }
  // Orders earlier accesses to the sums before the next products.
  SIMT_INLINED void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
  // Begins a product, which reads its operands until the threads wait for its group. At most kMost products run at
  // once.
  SIMT_INLINED void add(SharedAt a, SharedAt b) {
    WarpgroupInstruction<T, kColumns, kAcrossA, kAcrossB>::add(sums[0], descriptor_of(a), descriptor_of(b));
  }
  // Ends a group of products.
  SIMT_INLINED void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
  // Waits until all groups of products have ended, except at most the last kPending groups.
  template <int kPending>
  SIMT_INLINED void wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
    if constexpr (kPending == 0) {
      // The compiler must not move reads of the sums ahead of the wait.
      MMA_UNROLL for (int j = 0; j < kColumns / 8; ++j) {
        MMA_UNROLL for (int e = 0; e < 4; ++e) asm volatile("" : "+f"(sums[0][j][e])::"memory");
      }
    }
  }
};

#endif
