// SPDX-License-Identifier: Apache-2.0
// Tests the choice of blocks and of split-K.
#include <gtest/gtest.h>

#include "ops/block.hpp"

namespace backplane::simt {

namespace {

constexpr uint64_t kRoom = kBlockWorkspaceBytes;

Limits gpu(uint32_t compute_units) { return {.width = 32, .local_bytes = 48 << 10, .compute_units = compute_units}; }

TEST(Blocks, NeedRegistersAndLocalMemory) {
  EXPECT_TRUE(has_blocks(gpu(132)));
  Limits wide = gpu(132), narrow = wide, small = wide, cpu = wide, short_groups = wide;
  wide.width = 64;
  narrow.width = 16;
  small.local_bytes = 16 << 10;
  cpu.is_cpu = true;
  short_groups.max_group_size = 128;
  EXPECT_TRUE(has_blocks(wide));
  for (const Limits& limits : {narrow, small, cpu, short_groups}) EXPECT_FALSE(has_blocks(limits));
}

TEST(Blocks, CoverTheOutput) {
  const BlockPlan plan = plan_blocks(gpu(132), {4096, 4097, 4096, 3}, kRoom);
  EXPECT_TRUE(plan.is_large());
  EXPECT_EQ(plan.splits, 1u);
  EXPECT_EQ(plan.split_depth, 4096u);
  EXPECT_EQ(plan.groups, uint64_t{32} * 33 * 3);
  EXPECT_EQ(plan.group_size(), 256u);
}

TEST(Blocks, AreSmallIfTheOutputIsSmall) {
  const BlockPlan plan = plan_blocks(gpu(132), {64, 64, 32, 1000}, kRoom);
  EXPECT_FALSE(plan.is_large());
  EXPECT_EQ(plan.groups, 1000u);
  EXPECT_EQ(plan.group_size(), 128u);
}

TEST(Blocks, OccupyTheDeviceBySplits) {
  // The 3 x 3 convolutions of a ResNet-50 and of a diffusion U-Net.
  for (const BlockProduct& product : {BlockProduct{64, 3136, 576, 1}, BlockProduct{320, 1024, 2880, 1}}) {
    const BlockPlan plan = plan_blocks(gpu(132), product, kRoom);
    EXPECT_GT(plan.splits, 1u);
    EXPECT_GE(plan.groups, 120u);
    EXPECT_LE(uint64_t{plan.splits} * product.rows * product.columns * 4, kRoom);
    EXPECT_EQ(plan.split_depth % 32, 0u);
    EXPECT_GE(uint64_t{plan.splits} * plan.split_depth, product.depth);
    EXPECT_LT(uint64_t{plan.splits - 1} * plan.split_depth, product.depth);
  }
  EXPECT_EQ(plan_blocks(gpu(2), {320, 1024, 2880, 1}, kRoom).splits, 1u);
}

TEST(Blocks, HaveNoSplitsWithoutRoomOrDepth) {
  EXPECT_EQ(plan_blocks(gpu(132), {64, 64, 4096, 1}, 0).splits, 1u);
  EXPECT_EQ(plan_blocks(gpu(132), {64, 64, 0, 1}, kRoom).splits, 1u);
  EXPECT_EQ(plan_blocks(gpu(132), {64, 64, 100, 1}, kRoom).splits, 1u);
}

}  // namespace

}  // namespace backplane::simt
