// SPDX-License-Identifier: Apache-2.0
// Tests the kernel scan_tile, which only GPUs execute.
#define SIMT_HOST 1
#define SIMT_T F32
#define SIMT_T_BITS 32
#define SIMT_IS_FLOAT 1
#define SIMT_IS_SIGNED 0
#define SIMT_IS_BOOL 0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "device/scan.h"
#include "host_group.hpp"

namespace {

using namespace backplane::simt::test;

constexpr uint32_t kGroup = 64;

// Slices in a tensor of the shape [outer, extent, length] if `is_across` is true, or [outer, length, extent] otherwise.
struct Layout {
  uint32_t outer, length, extent;
  bool is_across;  // whether adjacent slices are one element apart
};
struct Options {
  uint32_t tile, splits;
  bool exclusive, reversed;
};

void expect_sums(const Layout& layout, const Options& options, uint32_t shift) {
  const auto [outer, length, extent, is_across] = layout;
  const int64_t stride = is_across ? length : 1, slice_stride = is_across ? 1 : extent;
  const uint32_t count = outer * length * extent;
  std::vector<float> x(count), out(count + 8, -7.0f);
  for (uint32_t i = 0; i < count; ++i) x[i] = static_cast<float>(i * 7919u % 1009u) - 500.0f;
  std::vector<float> moved(count + shift);
  std::copy(x.begin(), x.end(), moved.begin() + shift);
  NestParams p{};
  p.rank = 2;
  p.shape[0] = outer;
  p.shape[1] = length;
  p.count = outer * length;
  const int64_t last = options.reversed ? (extent - 1) * stride : 0;
  for (uint32_t k = 0; k < 2; ++k) {
    p.strides[k][0] = int64_t{length} * extent;
    p.strides[k][1] = slice_stride;
    p.extra[1 + k] = options.reversed ? -stride : stride;
    p.offsets[k] = sizeof(float) * static_cast<uint64_t>(last + (k == 1 ? shift : 0));
  }
  p.extra[0] = extent;
  p.extra[3] = options.tile;
  p.extra[5] = (extent + options.splits - 1) / options.splits;
  p.extra[4] = (extent + p.extra[5] - 1) / p.extra[5];
  p.option = options.exclusive ? 1 : 0;
  std::vector<Running> sums(p.count * static_cast<uint64_t>(p.extra[4]));
  const auto run = [&] {
    run_groups(2, kGroup,
               [&] { scan_tile(pointer_to(out.data()), pointer_to(moved.data()), pointer_to(sums.data()), p); });
  };
  if (p.extra[4] != 1) {
    p.option |= SCAN_SUMS;
    run();
    p.option &= ~SCAN_SUMS;
  }
  run();
  for (uint32_t slice = 0; slice < p.count; ++slice) {
    const int64_t begin = int64_t{slice / length} * length * extent + slice % length * slice_stride;
    float sum = 0;  // sums of these numbers are exact
    for (uint32_t i = 0; i < extent; ++i) {
      const int64_t at = begin + (options.reversed ? extent - 1 - i : i) * stride;
      const float before = sum;
      sum += x[static_cast<size_t>(at)];
      ASSERT_EQ(out[static_cast<size_t>(at)], options.exclusive ? before : sum) << slice << " " << i;
    }
  }
  for (uint32_t i = count; i < out.size(); ++i) ASSERT_EQ(out[i], -7.0f);
}

TEST(ScanTile, ResultsOfEachLayoutAreRight) {
  for (const Layout& layout : {Layout{2, 1, 1100, false}, Layout{2, 70, 50, true}, Layout{1, 5, 300, true}}) {
    for (const uint32_t tile : {1u, 8u, 64u}) {
      if (layout.is_across == (tile == 1)) continue;
      for (const uint32_t splits : {1u, 3u}) {
        for (uint32_t flags = 0; flags < 4; ++flags) {
          SCOPED_TRACE(std::to_string(layout.extent) + " " + std::to_string(tile) + " " + std::to_string(splits) + " " +
                       std::to_string(flags));
          expect_sums(layout, {tile, splits, (flags & 1) != 0, (flags & 2) != 0}, flags);
        }
      }
    }
  }
}

}  // namespace
