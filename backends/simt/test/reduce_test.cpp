// SPDX-License-Identifier: Apache-2.0
// Tests the reductions that only GPUs execute: of rows in packs, and of tiles of adjacent rows.
#define SIMT_HOST 1
#define SIMT_T F32
#define SIMT_T_BITS 32
#define SIMT_IS_FLOAT 1
#define SIMT_IS_SIGNED 0
#define SIMT_IS_BOOL 0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "device/reduce.h"
#include "host_group.hpp"

namespace {

using namespace backplane::simt::test;

constexpr uint32_t kGroup = 64;

// Returns numbers of different magnitudes and signs. Numbers repeat, so that extrema occur several times.
std::vector<float> numbers(uint32_t count) {
  std::vector<float> out(count);
  for (uint32_t i = 0; i < count; ++i) {
    out[i] = std::ldexp(static_cast<float>(i * 7919u % 1009u) - 500.0f, static_cast<int>(i % 5) - 2);
  }
  return out;
}

// Rows of `extent` contiguous elements.
ReduceParams contiguous_rows(uint32_t rows, uint32_t extent) {
  ReduceParams p{};
  p.outer_rank = p.inner_rank = 1;
  p.shape[0] = p.rows = rows;
  p.shape[1] = p.extent = p.split_length = extent;
  p.strides[0][0] = 1;
  p.strides[1][0] = extent;
  p.strides[1][1] = 1;
  p.splits = p.row_splits = 1;
  p.out_bytes = 4;
  p.tile = 1;
  return p;
}

TEST(ReducePacks, ResultsAreRightAndDoNotDependOnAddresses) {
  constexpr uint32_t kRows = 3;
  for (const uint32_t extent : {1u, 3u, 4u, 5u, 255u, 256u, 1025u, 3001u}) {
    const std::vector<float> x = numbers(kRows * extent);
    std::vector<float> first;
    for (uint32_t shift = 0; shift < 4; ++shift) {
      // The address of x's element 0 is 4 * shift bytes after a multiple of 16 bytes.
      alignas(16) static float memory[3 * 3001 + 4];
      std::memcpy(memory + shift, x.data(), x.size() * sizeof(float));
      ReduceParams p = contiguous_rows(kRows, extent);
      p.offsets[1] = shift * sizeof(float);
      std::vector<float> sums(kRows, -1.0f);
      std::vector<uint32_t> indices(kRows, 77777);
      run_groups(2, kGroup, [&] { reduce_sum_group(pointer_to(sums.data()), pointer_to(memory), nullptr, p); });
      run_groups(2, kGroup, [&] { argmax_group(pointer_to(indices.data()), pointer_to(memory), nullptr, p); });
      if (shift == 0) first = sums;
      EXPECT_EQ(sums, first) << extent << " " << shift;
      for (uint32_t row = 0; row < kRows; ++row) {
        double sum = 0;
        uint32_t best = 0;
        for (uint32_t i = 0; i < extent; ++i) {
          sum += x[row * extent + i];
          if (x[row * extent + i] > x[row * extent + best]) best = i;
        }
        EXPECT_EQ(sums[row], static_cast<float>(sum)) << extent << " " << row;
        EXPECT_EQ(indices[row], best) << extent << " " << row;
      }
    }
  }
}

TEST(ReduceTile, ResultsOfAdjacentRowsAreRight) {
  // Input of the shape [2, 29, 37], which is reduced over the second dimension.
  constexpr uint32_t kOuter = 2, kExtent = 29, kLength = 37;
  const std::vector<float> x = numbers(kOuter * kExtent * kLength);
  for (const uint32_t tile : {1u, 16u, 64u}) {
    for (const uint32_t splits : {1u, 3u}) {
      ReduceParams p{};
      p.outer_rank = 2;
      p.inner_rank = 1;
      p.shape[0] = kOuter;
      p.shape[1] = kLength;
      p.shape[2] = p.extent = kExtent;
      p.strides[0][0] = kLength;
      p.strides[0][1] = 1;
      p.strides[1][0] = kExtent * kLength;
      p.strides[1][1] = 1;
      p.strides[1][2] = kLength;
      p.rows = kOuter * kLength;
      p.splits = p.row_splits = splits;
      p.split_length = (kExtent + splits - 1) / splits;
      p.is_partial = splits != 1;
      p.out_bytes = 4;
      p.tile = tile;
      std::vector<float> sums(p.rows, -1.0f);
      std::vector<uint32_t> indices(p.rows, 77777);
      std::vector<uint64_t> partials(p.rows * splits);
      const auto run = [&](auto kernel, uint32_t group, auto& out) {
        run_groups(2, group, [&] {
          kernel(pointer_to(out.data()), pointer_to(const_cast<float*>(x.data())), pointer_to(partials.data()), p);
        });
      };
      run(reduce_sum_tile, kGroup, sums);
      if (splits != 1) run(reduce_sum_partials, width(), sums);
      run(argmax_tile, kGroup, indices);
      if (splits != 1) run(argmax_partials, width(), indices);
      for (uint32_t row = 0; row < p.rows; ++row) {
        const float* from = x.data() + row / kLength * kExtent * kLength + row % kLength;
        double sum = 0;
        uint32_t best = 0;
        for (uint32_t i = 0; i < kExtent; ++i) {
          sum += from[i * kLength];
          if (from[i * kLength] > from[best * kLength]) best = i;
        }
        EXPECT_EQ(sums[row], static_cast<float>(sum)) << tile << " " << splits << " " << row;
        EXPECT_EQ(indices[row], best) << tile << " " << splits << " " << row;
      }
    }
  }
}

}  // namespace
