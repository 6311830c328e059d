// SPDX-License-Identifier: Apache-2.0
// Functions of warps for kernels that use matrix units: copies to shared memory that continue while a warp computes,
// loads of fragments, and products of fragments. nvcc compiles these functions to PTX instructions. The test driver
// emulates these functions with sub-groups of 32 work items of OpenCL, and with the layouts that the documentation of
// PTX states.
//
// All threads of a warp call a function together. A shared address is a multiple of 16 bytes.
#pragma once
#include "device/types.h"

// MMA_KERNEL begins a kernel whose groups have `threads` threads. A multiprocessor should run at least `groups`
// groups at once. MMA_SHARED names the shared memory of `bytes` bytes that the launch adds
// (simt::Launch::local_bytes).
#if defined(__OPENCL_CPP_VERSION__)

#define MMA_KERNEL(name, threads, groups) SIMT_KERNEL(name)
#define MMA_ROLLED _Pragma("nounroll")
#define MMA_UNROLL _Pragma("nounroll")
#define MMA_SHARED(name, bytes) SIMT_SHARED(u8, name, bytes) __attribute__((aligned(128)))

struct SharedAt {
  SIMT_LOCAL u8* base;
  u32 offset;
};
SIMT_FN SharedAt shared_at(SIMT_LOCAL u8* base) { return {base, 0u}; }
SIMT_FN SharedAt operator+(SharedAt at, u32 bytes) { return {at.base, at.offset + bytes}; }

// The copies of a thread. A copy takes effect only when the thread waits for it, so that a missing wait changes
// results. Until then, the destination contains NaN.
template <int kMost>
struct SharedCopies {
  SharedAt to[kMost];
  SIMT_GLOBAL const u8* from[kMost];
  u32 bytes[kMost], group[kMost];
  u32 first = 0, count = 0, groups = 0;

  SIMT_FN void add(SharedAt at, SIMT_GLOBAL const u8* source, u32 source_bytes) {
    const u32 i = (first + count) % (u32)kMost;
    to[i] = at, from[i] = source, bytes[i] = source_bytes, group[i] = groups;
    ++count;
    for (u32 k = 0; k < 4; ++k) ((SIMT_LOCAL u32*)(at.base + at.offset))[k] = 0xFFFFFFFFu;
  }
  SIMT_FN void commit() { ++groups; }
  template <int kPending>
  SIMT_FN void wait() {
    while (count != 0 && group[first] + kPending < groups) {
      for (u32 k = 0; k < 8; ++k) {
        SIMT_LOCAL u16* const element = (SIMT_LOCAL u16*)(to[first].base + to[first].offset) + k;
        *element = 2 * k < bytes[first] ? ((SIMT_GLOBAL const u16*)from[first])[k] : (u16)0;
      }
      first = (first + 1) % (u32)kMost;
      --count;
    }
  }
};

SIMT_FN u32 shuffle_from(u32 x, u32 from) { return sub_group_shuffle(x, from); }

// Loads four matrices of 8 x 8 elements. Lane 8 j + r passes the address of row r of matrix j. out[j] then contains
// two adjacent elements of row lane / 4 of matrix j.
SIMT_FN void load_matrices(u32 (&out)[4], SharedAt row) {
  for (u32 j = 0; j < 4; ++j) {
    const u32 at = shuffle_from(row.offset, 8 * j + lane() / 4);
    out[j] = ((SIMT_LOCAL const u32*)(row.base + at))[lane() % 4];
  }
}
// Like load_matrices, for transposed matrices: a lane has two elements of column lane / 4.
SIMT_FN void load_transposed(u32 (&out)[4], SharedAt row) {
  for (u32 j = 0; j < 4; ++j) {
    const u32 low = shuffle_from(row.offset, 8 * j + lane() % 4 * 2),
              high = shuffle_from(row.offset, 8 * j + lane() % 4 * 2 + 1);
    out[j] = (u32)((SIMT_LOCAL const u16*)(row.base + low))[lane() / 4] |
             (u32)((SIMT_LOCAL const u16*)(row.base + high))[lane() / 4] << 16;
  }
}

template <class T>
SIMT_FN float element(u32 pair, u32 part) {
  return T::value((u16)(pair >> 16 * part));
}
// Adds a product of 16 x 16 and 16 x 8 elements of T to 16 x 8 elements of f32. a and b are fragments of
// load_matrices. In a lane, d[0] and d[1] are in row lane / 4 and in the columns lane % 4 * 2 and + 1. d[2] and d[3]
// are in row lane / 4 + 8 and in the same columns.
template <class T>
SIMT_FN void multiply_add_fragments(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  const u32 row = lane() / 4, column = lane() % 4 * 2;
  const u32 b[2] = {b0, b1};
  for (u32 k = 0; k < 2; ++k) {
    for (u32 pair = 0; pair < 4; ++pair) {
      const u32 low = shuffle_from(a[2 * k], row * 4 + pair), high = shuffle_from(a[2 * k + 1], row * 4 + pair);
      const u32 left = shuffle_from(b[k], column * 4 + pair), right = shuffle_from(b[k], column * 4 + 4 + pair);
      for (u32 part = 0; part < 2; ++part) {
        d[0] += element<T>(low, part) * element<T>(left, part);
        d[1] += element<T>(low, part) * element<T>(right, part);
        d[2] += element<T>(high, part) * element<T>(left, part);
        d[3] += element<T>(high, part) * element<T>(right, part);
      }
    }
  }
}
// Rounds two numbers to T. The first one is in the low half of the result.
template <class T>
SIMT_FN u32 pair_of(float low, float high) {
  return (u32)T::bits(low) | (u32)T::bits(high) << 16;
}
// Loads 16 bytes from an address that is a multiple of 16.
SIMT_FN void load_words(u32* out, SIMT_GLOBAL const u8* from) {
  for (u32 i = 0; i < 4; ++i) out[i] = ((SIMT_GLOBAL const u32*)from)[i];
}
// Stores 16 bytes to an address that is a multiple of 16.
SIMT_FN void store_words(Pointer to, const u32 (&words)[4]) {
  *(SIMT_GLOBAL uint4*)to = (uint4)(words[0], words[1], words[2], words[3]);
}

#else

#define MMA_KERNEL(name, threads, groups) extern "C" __global__ void __launch_bounds__(threads, groups) name
#define MMA_ROLLED _Pragma("unroll 1")
#define MMA_UNROLL SIMT_UNROLL
#define MMA_SHARED(name, bytes) extern __shared__ __align__(128) u8 name[]

typedef u32 SharedAt;
SIMT_FN SharedAt shared_at(u8* base) { return (u32)__cvta_generic_to_shared(base); }

template <int kMost>
struct SharedCopies {
  // Copies `bytes` bytes, which are at most 16, and fills the destination up to 16 bytes with zeros. `from` is a
  // multiple of 16 bytes.
  SIMT_INLINED void add(SharedAt to, const u8* from, u32 bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
  }
  // Ends a group of copies.
  SIMT_INLINED void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
  // Waits until all groups of this thread's copies have ended, except at most the last kPending groups.
  template <int kPending>
  SIMT_INLINED void wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
  }
};

SIMT_INLINED u32 shuffle_from(u32 x, u32 from) { return __shfl_sync(0xFFFFFFFFu, x, (int)from); }

SIMT_INLINED void load_matrices(u32 (&out)[4], SharedAt row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(row)
               : "memory");
}
SIMT_INLINED void load_transposed(u32 (&out)[4], SharedAt row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(row)
               : "memory");
}

// The instructions for f16 and bf16 have the same operands.
#define MMA_INSTRUCTION(type)                                                \
  asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type                 \
      ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                       \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
template <class T>
SIMT_INLINED void multiply_add_fragments(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1);
template <>
SIMT_INLINED void multiply_add_fragments<F16>(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  MMA_INSTRUCTION("f16");
}
template <>
SIMT_INLINED void multiply_add_fragments<BF16>(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  MMA_INSTRUCTION("bf16");
}
#undef MMA_INSTRUCTION

template <class T>
SIMT_INLINED u32 pair_of(float low, float high);
template <>
SIMT_INLINED u32 pair_of<F16>(float low, float high) {
  u32 out;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  return out;
}
template <>
SIMT_INLINED u32 pair_of<BF16>(float low, float high) {
  u32 out;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  return out;
}
SIMT_INLINED void load_words(u32* out, const u8* from) {
  const uint4 words = *(const uint4*)from;
  out[0] = words.x, out[1] = words.y, out[2] = words.z, out[3] = words.w;
}
SIMT_INLINED void store_words(Pointer to, const u32 (&words)[4]) {
  *(uint4*)to = make_uint4(words[0], words[1], words[2], words[3]);
}

#endif
