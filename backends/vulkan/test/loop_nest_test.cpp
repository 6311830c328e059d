// SPDX-License-Identifier: Apache-2.0
#include "ops/loop_nest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace backplane::vulkan::test {

namespace {

Buffer at_zero;

View view_of(std::initializer_list<int64_t> shape, std::initializer_list<int64_t> strides) {
  View view;
  view.dtype = BP_F32;
  view.rank = static_cast<uint32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), view.shape);
  std::copy(strides.begin(), strides.end(), view.strides);
  view.place = {&at_zero, 0x1000};
  return view;
}

TEST(LoopNest, PackedOperandsBecomeOneDimension) {
  const View out = view_of({2, 3, 4}, {12, 4, 1}), in = view_of({2, 3, 4}, {12, 4, 1});
  LoopNest nest = LoopNest::of({&out, &in});
  nest.merge();
  EXPECT_EQ(nest.rank, 1u);
  EXPECT_EQ(nest.shape[0], 24);
  EXPECT_EQ(nest.operand[1].strides[0], 4);
}

TEST(LoopNest, ADimensionStaysWhereOneOperandSteps) {
  const View out = view_of({2, 3, 4}, {12, 4, 1}), in = view_of({2, 3, 4}, {0, 4, 1});
  LoopNest nest = LoopNest::of({&out, &in});
  nest.merge();
  EXPECT_EQ(nest.rank, 2u);
  EXPECT_THAT(std::vector<int64_t>(nest.shape, nest.shape + 2), testing::ElementsAre(2, 12));
  EXPECT_EQ(nest.operand[0].strides[0], 48);
  EXPECT_EQ(nest.operand[1].strides[0], 0);
}

TEST(LoopNest, LinesOfBothSidesComeLastWhereTheyDiffer) {
  const View out = view_of({5, 20, 30, 7}, {20 * 30 * 7, 30 * 7, 7, 1}),
             in = view_of({5, 20, 30, 7}, {1, 5, 100, 3000});
  LoopNest nest = LoopNest::of({&out, &in});
  EXPECT_FALSE(nest.transpose(8)) << "lines of 7 and 5 are too short";
  ASSERT_TRUE(nest.transpose(5));
  EXPECT_THAT(std::vector<int64_t>(nest.shape, nest.shape + 4), testing::ElementsAre(20, 30, 5, 7));
  EXPECT_THAT(std::vector<int64_t>(nest.operand[0].strides, nest.operand[0].strides + 4),
              testing::ElementsAre(840, 28, 16800, 4));
  EXPECT_THAT(std::vector<int64_t>(nest.operand[1].strides, nest.operand[1].strides + 4),
              testing::ElementsAre(20, 400, 4, 12000));
  LoopNest same = LoopNest::of({&out, &out});
  EXPECT_FALSE(same.transpose(1));
}

TEST(LoopNest, PartsCoverEveryElementInOrder) {
  constexpr int64_t kRows = 5, kColumns = int64_t{1} << 29;
  const View out = view_of({kRows, kColumns}, {kColumns, 1});
  LoopNest nest = LoopNest::of({&out});
  nest.merge();
  int64_t next = 0;
  const auto status = nest.for_slices([&](const LoopNest& part, int64_t first) {
    EXPECT_EQ(first, next);
    EXPECT_EQ(part.operand[0].address, 0x1000u + static_cast<uint64_t>(first) * 4);
    EXPECT_LE(part.count(), int64_t{1} << 30);
    next += part.count();
    return kit::Status{};
  });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(next, kRows * kColumns);
}

TEST(LoopNest, ImmediatesAreAddressedInTheParameters) {
  const View out = view_of({8}, {1});
  View in = view_of({8}, {0});
  in.dtype = BP_F16;
  in.immediate = 0x4200;
  in.is_immediate = true;
  in.place = {};
  Params params{};
  LoopNest::of({&out, &in}).fill(params, 0x9000);
  EXPECT_EQ(params.operands[0].address, 0x1000u);
  EXPECT_EQ(params.operands[1].address, 0x9000u + offsetof(Params, operand_values) + 4 * sizeof(uint64_t));
  EXPECT_EQ(params.operands[1].strides[0], 0);
  uint64_t four = 0;
  std::memcpy(&four, params.operand_values[1], sizeof(four));
  EXPECT_EQ(four, 0x4200420042004200u);
}

TEST(LoopNest, AccessesReachFromTheFirstByteToBehindTheLast) {
  Accesses accesses;
  add_access(accesses, view_of({4, 3}, {-10, 2}), true);
  ASSERT_EQ(accesses.size(), 1u);
  EXPECT_EQ(accesses[0].begin, 0x1000u - 3 * 10 * 4);
  EXPECT_EQ(accesses[0].end, 0x1000u + 2 * 2 * 4 + 4);
  EXPECT_TRUE(accesses[0].write);
  add_access(accesses, view_of({4, 0}, {1, 1}), true);
  EXPECT_EQ(accesses.size(), 1u);
}

}  // namespace

}  // namespace backplane::vulkan::test
