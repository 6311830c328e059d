// SPDX-License-Identifier: Apache-2.0
// Tests the transposition of blocks in registers for elements of SIMT_T_BITS bits. The including file defines SIMT_T.
#pragma once

#define SIMT_HOST 1
#include <gtest/gtest.h>

#include <vector>

#include "device/copy.h"
#include "device/index_gather.h"
#include "host_group.hpp"

namespace {

using namespace backplane::simt::test;
using Bits = SIMT_T::Bits;

constexpr uint32_t kThreads = 256;

template <class T>
struct Memory {
  explicit Memory(size_t count) : words((count * sizeof(T) + 15) / 16 + 1) {}
  T* data() { return reinterpret_cast<T*>(words.data()); }
  T& operator[](size_t i) { return data()[i]; }
  struct alignas(16) Word {
    u8 at[16];
  };
  std::vector<Word> words;
};

// Returns the parameters of kernels on operands of the shape [bands, rows, columns]. Operand 1 is contiguous along the
// second dimension, and the other operands along the last.
NestParams matrices(uint32_t bands, uint32_t rows, uint32_t columns) {
  NestParams p{};
  p.rank = 3;
  p.shape[0] = bands;
  p.shape[1] = rows;
  p.shape[2] = columns;
  for (uint32_t k = 0; k < 3; ++k) {
    const bool across = k == 1;
    p.strides[k][0] = int64_t{rows} * columns;
    p.strides[k][1] = across ? 1 : columns;
    p.strides[k][2] = across ? rows : 1;
  }
  return p;
}
uint32_t divide_up(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

struct Mix {
  typedef Bits Out;
  typedef Bits In;
  static Bits apply(Bits a, Bits b, u32 option) { return static_cast<Bits>(a * 3 + b + option); }
};

TEST(Blocks, ContainEachElementOnce) {
  for (const uint32_t across : {1u, 4u, 16u, 64u}) {
    constexpr uint32_t kBands = 2, kRows = 5 * SIMT_LINE, kColumns = 19 * SIMT_LINE;
    NestParams p = matrices(kBands, kRows, kColumns);
    const uint32_t down = kThreads / across;
    p.extra[0] = across;
    p.count = kBands * divide_up(kRows / SIMT_LINE, down) * divide_up(kColumns / SIMT_LINE, across);
    p.option = 5;
    constexpr uint32_t kCount = kBands * kRows * kColumns;
    Memory<Bits> a(kCount), b(kCount), copied(kCount), mixed(kCount);
    for (uint32_t i = 0; i < kCount; ++i) a[i] = static_cast<Bits>(i * 2654435761u >> 7), b[i] = static_cast<Bits>(i);
    run_groups(3, kThreads, [&] { copy_blocks(pointer_to(copied.data()), pointer_to(a.data()), p); });
    run_groups(3, kThreads,
               [&] { map2_blocks<Mix>(pointer_to(mixed.data()), pointer_to(a.data()), pointer_to(b.data()), p); });
    for (uint32_t i = 0; i < kCount; ++i) {
      const uint32_t band = i / (kRows * kColumns), row = i / kColumns % kRows, column = i % kColumns;
      const Bits x = a[(band * kColumns + column) * kRows + row];
      ASSERT_EQ(copied[i], x) << across << " " << i;
      ASSERT_EQ(mixed[i], Mix::apply(x, b[i], 5)) << across << " " << i;
    }
  }
}

TEST(Tiles, ContainEachElementOfAnyMatrix) {
  constexpr uint32_t kBands = 2, kRows = 71, kColumns = 131, kCount = kBands * kRows * kColumns;
  NestParams p = matrices(kBands, kRows, kColumns);
  p.count = kBands * divide_up(kRows, SIMT_WIDE_TILE) * divide_up(kColumns, SIMT_WIDE_TILE);
  Memory<Bits> a(kCount), copied(kCount + 1);
  for (uint32_t i = 0; i < kCount; ++i) a[i] = static_cast<Bits>(i * 2654435761u >> 7);
  copied[kCount] = 42;
  run_groups(3, kThreads, [&] { copy_tiles(pointer_to(copied.data()), pointer_to(a.data()), p); });
  for (uint32_t i = 0; i < kCount; ++i) {
    const uint32_t band = i / (kRows * kColumns), row = i / kColumns % kRows, column = i % kColumns;
    ASSERT_EQ(copied[i], a[(band * kColumns + column) * kRows + row]) << i;
  }
  EXPECT_EQ(copied[kCount], 42);
}

template <class Index>
void expect_gathered() {
  // out[i, j] = x[index[i, j], j]. `out` has 3 rows of 8 elements. `x` has 5 rows, whose elements are 2 apart.
  constexpr uint32_t kRows = 3, kColumns = 8, kExtent = 5;
  Memory<Bits> x(kExtent * kColumns * 2), out(kRows * kColumns);
  Memory<Index> index(kRows * kColumns);
  for (uint32_t i = 0; i < kExtent * kColumns * 2; ++i) x[i] = static_cast<Bits>(i + 1);
  for (uint32_t i = 0; i < kRows * kColumns; ++i) index[i] = static_cast<Index>(i % 7) - 1;  // -1 and 5 are outside
  NestParams p{};
  p.rank = 2;
  p.shape[0] = kRows;
  p.shape[1] = kColumns / 4;
  p.count = kRows * kColumns / 4;
  for (uint32_t k = 0; k < 2; ++k) p.strides[k][0] = kColumns, p.strides[k][1] = 4;
  p.strides[2][1] = 4 * 2;
  p.extra[0] = kExtent;
  p.extra[1] = kColumns * 2;
  p.extra[2] = 2;
  p.option = sizeof(Index);
  run_groups(1, 4, [&] { gather_quads(pointer_to(out.data()), pointer_to(index.data()), pointer_to(x.data()), p); });
  for (uint32_t i = 0; i < kRows * kColumns; ++i) {
    const Index which = index[i];
    const bool inside = which >= 0 && which < static_cast<Index>(kExtent);
    EXPECT_EQ(out[i], inside ? x[static_cast<size_t>(which) * kColumns * 2 + i % kColumns * 2] : Bits{0}) << i;
  }
}
TEST(GatherQuads, SelectElementsByBothIndexTypes) {
  expect_gathered<i32>();
  expect_gathered<i64>();
}

}  // namespace
