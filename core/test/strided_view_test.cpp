// SPDX-License-Identifier: Apache-2.0
// Tests views: extents, denseness, and overlap, which is compared with brute force.
#include "base/strided_view.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace backplane::core::test {
namespace {

bp_tensor_desc view(std::vector<int64_t> shape, std::vector<int64_t> strides) {
  bp_tensor_desc desc = {};
  desc.dtype = BP_F32;
  desc.rank = static_cast<uint8_t>(shape.size());
  std::copy(shape.begin(), shape.end(), desc.shape);
  std::copy(strides.begin(), strides.end(), desc.strides);
  return desc;
}

// Returns the offset of every element, in elements.
std::vector<int64_t> offsets(const bp_tensor_desc& desc) {
  std::vector<int64_t> result{0};
  for (uint32_t d = 0; d < desc.rank; ++d) {
    std::vector<int64_t> next;
    for (const int64_t base : result) {
      for (int64_t i = 0; i < desc.shape[d]; ++i) next.push_back(base + i * desc.strides[d]);
    }
    result = std::move(next);
  }
  return result;
}

TEST(Layout, CountsElements) {
  EXPECT_EQ(element_count(view({}, {})), 1);
  EXPECT_EQ(element_count(view({2, 3, 4}, {0, 0, 0})), 24);
  EXPECT_EQ(element_count(view({int64_t{1} << 62, 0, 8}, {1, 1, 1})), 0) << "no elements, whatever the others are";
  EXPECT_EQ(element_count(view({int64_t{1} << 40, int64_t{1} << 40}, {1, 1})), -1);
}

TEST(Layout, ExtentCoversNegativeStrides) {
  Extent extent;
  ASSERT_TRUE(extent_of(view({3, 4}, {-10, 2}), 4, &extent));
  EXPECT_EQ(extent.lo, -80);
  EXPECT_EQ(extent.hi, 28);
  ASSERT_TRUE(extent_of(view({3, 0}, {-10, 2}), 4, &extent));
  EXPECT_EQ(extent.lo, 0);
  EXPECT_EQ(extent.hi, 0);
  EXPECT_FALSE(extent_of(view({3, 4}, {INT64_MAX / 4, 1}), 8, &extent));
  EXPECT_FALSE(extent_of(view({3, 4}, {INT64_MIN, 1}), 1, &extent));
}

// Strides that no element uses may have any value. If one extent of a view is 0, the other extents
// may have any value. Under a sanitizer, the test also fails if an integer overflows.
TEST(Layout, NumbersThatDoNotCountAreNotReckonedWith) {
  const int64_t huge = int64_t{1} << 40;
  EXPECT_TRUE(is_dense(view({0, huge, huge, huge}, {1, 2, 3, 4})));
  bp_tensor_desc none = view({0, huge, huge, huge}, {0, 0, 0, 0});
  make_dense(none);
  EXPECT_EQ(none.strides[2], huge);
  for (const int64_t stride : {INT64_MIN, INT64_MIN + 1, INT64_MAX}) {
    const bp_tensor_desc one = view({1, 4}, {stride, 1});
    EXPECT_EQ(self_overlap(one), Overlap::no);
    EXPECT_EQ(views_overlap(one, 8, one, 8, 0), Overlap::yes);
    EXPECT_EQ(views_overlap(one, 8, one, 8, 32), Overlap::no);
  }
  // With elements of one byte, this view spans the whole address space.
  const bp_tensor_desc wide = view({2, 2}, {INT64_MAX - 1, -(INT64_MAX - 1)});
  EXPECT_NE(self_overlap(wide), Overlap::no);
  EXPECT_NE(views_overlap(wide, 1, wide, 1, 0), Overlap::no);
}

TEST(Layout, DenseIgnoresExtentsOfOne) {
  EXPECT_TRUE(is_dense(view({2, 1, 3}, {3, 77, 1})));
  EXPECT_FALSE(is_dense(view({2, 3}, {4, 1})));
  EXPECT_FALSE(is_dense(view({2, 3}, {1, 2})));
  EXPECT_TRUE(is_dense(view({0, 3}, {9, 9})));
  EXPECT_TRUE(is_dense(view({}, {})));
}

TEST(Layout, SelfOverlapAgreesWithBruteForce) {
  std::mt19937_64 random(7);
  int overlapping = 0;
  for (int round = 0; round < 20000; ++round) {
    const auto rank = random() % 4;
    std::vector<int64_t> shape, strides;
    for (size_t d = 0; d < rank; ++d) {
      shape.push_back(static_cast<int64_t>(random() % 5));
      strides.push_back(static_cast<int64_t>(random() % 19) - 9);
    }
    const bp_tensor_desc desc = view(shape, strides);
    const std::vector<int64_t> all = offsets(desc);
    const bool expected = std::set(all.begin(), all.end()).size() != all.size();
    overlapping += expected;
    ASSERT_EQ(self_overlap(desc), expected ? Overlap::yes : Overlap::no) << "round " << round;
  }
  EXPECT_GT(overlapping, 1000) << "the sample has both kinds";
}

TEST(Layout, ViewsOverlapAgreesWithBruteForce) {
  std::mt19937_64 random(11);
  int overlapping = 0, apart = 0;
  for (int round = 0; round < 20000; ++round) {
    bp_tensor_desc desc[2];
    uint32_t bytes[2];
    for (int k = 0; k < 2; ++k) {
      const auto rank = random() % 4;
      std::vector<int64_t> shape, strides;
      for (size_t d = 0; d < rank; ++d) {
        shape.push_back(static_cast<int64_t>(random() % 4));
        strides.push_back(static_cast<int64_t>(random() % 15) - 7);
      }
      desc[k] = view(shape, strides);
      bytes[k] = 1u << (random() % 4);
    }
    const auto distance = static_cast<int64_t>(random() % 121) - 60;
    std::set<int64_t> touched;
    for (const int64_t offset : offsets(desc[0])) {
      for (int64_t byte = 0; byte < bytes[0]; ++byte) touched.insert(offset * bytes[0] + byte);
    }
    bool expected = false;
    for (const int64_t offset : offsets(desc[1])) {
      for (int64_t byte = 0; byte < bytes[1]; ++byte)
        expected |= touched.count(distance + offset * bytes[1] + byte) != 0;
    }
    (expected ? overlapping : apart)++;
    ASSERT_EQ(views_overlap(desc[0], bytes[0], desc[1], bytes[1], distance), expected ? Overlap::yes : Overlap::no)
        << "round " << round;
  }
  EXPECT_GT(overlapping, 1000);
  EXPECT_GT(apart, 1000);
}

TEST(Layout, InterleavedHalvesDoNotOverlap) {
  // Views the two halves of each row, as in rope. The byte ranges that the halves span overlap, but their elements do
  // not.
  const bp_tensor_desc half = view({4096, 64}, {128, 1});
  EXPECT_EQ(views_overlap(half, 4, half, 4, 256), Overlap::no);
  EXPECT_EQ(views_overlap(half, 4, half, 4, 252), Overlap::yes);
}

}  // namespace
}  // namespace backplane::core::test
