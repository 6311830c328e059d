// SPDX-License-Identifier: Apache-2.0
// Tests the kernel topk_filter, which selects with a bound and which only GPUs execute.
#define SIMT_HOST 1
#define SIMT_T F32
#define SIMT_T_BITS 32
#define SIMT_IS_FLOAT 1
#define SIMT_IS_SIGNED 0
#define SIMT_IS_BOOL 0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "device/topk.h"
#include "host_group.hpp"

namespace {

using namespace backplane::simt::test;

constexpr uint32_t kGroup = 64;

void expect_selection(const std::vector<float>& x, uint32_t wanted, uint32_t shift, bool smallest) {
  const auto extent = static_cast<uint32_t>(x.size());
  std::vector<float> moved(shift + extent), values(wanted, -7.0f);
  std::copy(x.begin(), x.end(), moved.begin() + shift);
  std::vector<uint32_t> indices(wanted, 77777), order(extent);
  NestParams p{};
  p.rank = 1;
  p.shape[0] = p.count = 1;
  p.option = smallest ? 1 : 0;
  p.offsets[2] = shift * sizeof(float);
  p.extra[0] = extent;
  p.extra[1] = wanted;
  p.extra[2] = p.extra[3] = p.extra[4] = 1;
  p.extra[5] = 4;
  run_groups(1, kGroup,
             [&] { topk_filter(pointer_to(values.data()), pointer_to(indices.data()), pointer_to(moved.data()), p); });
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const int32_t first = F32::order(bits_of_float(x[a])), second = F32::order(bits_of_float(x[b]));
    return smallest ? first < second : first > second;
  });
  order.resize(wanted);
  EXPECT_EQ(indices, order);
  for (uint32_t i = 0; i < wanted; ++i) EXPECT_EQ(bits_of_float(values[i]), bits_of_float(x[order[i]])) << i;
}

// Tests selections from slices whose element i is function(i).
template <class Function>
void expect_selections(const Function& function) {
  for (const uint32_t extent : {1025u, 5000u}) {
    std::vector<float> x(extent);
    for (uint32_t i = 0; i < extent; ++i) x[i] = function(i);
    for (const uint32_t wanted : {1u, 16u, 40u, 256u}) {
      for (const bool smallest : {false, true}) {
        SCOPED_TRACE(testing::Message() << extent << " " << wanted << " " << smallest);
        expect_selection(x, wanted, wanted % 3, smallest);
      }
    }
  }
}

TEST(TopkFilter, SelectsFromDifferentElements) {
  expect_selections([](uint32_t i) { return static_cast<float>(i * 7919u % 10007u) - 5000.0f; });
}
TEST(TopkFilter, SelectsTheFirstOfEqualElements) {
  expect_selections([](uint32_t) { return 1.0f; });
  expect_selections([](uint32_t i) { return static_cast<float>(i % 7u); });
}
TEST(TopkFilter, OrdersNanInfinitiesAndZeros) {
  expect_selections([](uint32_t i) {
    using Limits = std::numeric_limits<float>;
    return i % 17u == 0 ? Limits::quiet_NaN() : i % 5u == 0 ? -0.0f : i % 3u == 0 ? Limits::infinity() : 0.0f;
  });
}
// To select 256 of 5,000 elements, 64 threads divide the slice into 256 parts of about 20 elements. All positive
// elements are in 60 parts, and these about 1,200 elements are more than local memory can hold.
TEST(TopkFilter, SelectsIfTheElementsThatRemainExceedLocalMemory) {
  expect_selections(
      [](uint32_t i) { return i / 8u % 64u < 15u ? static_cast<float>(i) + 1.0f : -static_cast<float>(i); });
}

}  // namespace
