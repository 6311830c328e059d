// SPDX-License-Identifier: Apache-2.0
#include "runtime/cooperative.hpp"

#include <backplane/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "runtime/pipelines.hpp"
#include "shaders/sizes.h"

namespace backplane::vulkan::test {

namespace {

constexpr uint32_t kSmall = BACKPLANE_MATRIX_TILE, kLarge = BACKPLANE_MATRIX_LARGE_TILE,
                   kGroup = BACKPLANE_MATRIX_GROUP;

CooperativeMatrices device(uint32_t subgroup_size, std::vector<MatrixShape> shapes) {
  CooperativeMatrices out;
  out.shapes = std::move(shapes);
  out.subgroup_size = subgroup_size;
  return out;
}

// Typical devices, each with its subgroup size and the matrix shapes that its driver lists.
const std::vector<CooperativeMatrices> kDevices = {
    device(8, {{BP_F16, 8, 8, 8}, {BP_I8, 8, 8, 8}}),
    device(16, {{BP_F16, 8, 16, 16}, {BP_BF16, 8, 16, 16}, {BP_I8, 8, 16, 32}}),
    device(32, {{BP_F16, 16, 16, 16}, {BP_F16, 16, 8, 16}, {BP_F16, 16, 8, 8}, {BP_I8, 16, 16, 32}}),
    device(64, {{BP_F16, 16, 16, 16}, {BP_BF16, 16, 16, 16}, {BP_I8, 16, 16, 16}}),
};

TEST(Cooperative, SubgroupsShareATileEvenly) {
  for (const CooperativeMatrices& each : kDevices) {
    for (const MatrixShape& shape : each.shapes) {
      for (const uint32_t tile : {kSmall, kLarge}) {
        const auto found = each.tiling(shape.dtype, tile, tile);
        ASSERT_TRUE(found) << each.subgroup_size << " lanes";
        const uint32_t subgroups = kGroup / found->subgroup_size, n = subgroups / found->subgroups_m;
        EXPECT_EQ(subgroups % found->subgroups_m, 0u);
        EXPECT_EQ(tile % (found->subgroups_m * found->shape.m), 0u);
        EXPECT_EQ(tile % (n * found->shape.n), 0u);
        EXPECT_EQ(found->rows, tile);
        EXPECT_EQ(found->columns, tile);
      }
    }
  }
}

TEST(Cooperative, TheLargestShapeIsTaken) {
  const auto found = kDevices[2].tiling(BP_F16, kLarge, kLarge);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->shape.n, 16u);
  EXPECT_EQ(found->shape.k, 16u);
  // There are 8 subgroups, each with 32 x 64 or 64 x 32 outputs.
  EXPECT_THAT(found->subgroups_m, testing::AnyOf(2u, 4u));
}

TEST(Cooperative, ShapesThatDoNotDivideATileAreSkipped) {
  EXPECT_FALSE(device(32, {{BP_F16, 48, 16, 16}}).tiling(BP_F16, kLarge, kLarge));
  EXPECT_FALSE(device(32, {{BP_F16, 16, 16, 24}}).tiling(BP_F16, kLarge, kLarge));
  // The tile has 4 matrices for 32 subgroups.
  EXPECT_FALSE(device(8, {{BP_F16, 32, 32, 16}}).tiling(BP_F16, kSmall, kSmall));
  EXPECT_FALSE(device(32, {{BP_F16, 16, 16, 16}}).tiling(BP_F32, kLarge, kLarge));
}

TEST(Cooperative, AWideTileNeedsSharedMemoryAndVectors) {
  CooperativeMatrices gpu = kDevices[2];
  gpu.shared_memory = 48 << 10;
  const auto found = gpu.wide_tiling(BP_F16);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rows, uint32_t{BACKPLANE_MATRIX_WIDE_TILE_M});
  EXPECT_EQ(found->columns, uint32_t{BACKPLANE_MATRIX_WIDE_TILE_N});
  EXPECT_EQ(found->subgroups_m, 2u);  // each of the 8 subgroups has 64 x 64 outputs
  EXPECT_FALSE(gpu.wide_tiling(BP_I8));
  gpu.shared_memory = 32 << 10;
  EXPECT_FALSE(gpu.wide_tiling(BP_F16));
  CooperativeMatrices narrow = device(32, {{BP_F16, 16, 4, 16}});
  narrow.shared_memory = 48 << 10;
  EXPECT_FALSE(narrow.wide_tiling(BP_F16));
}

TEST(Cooperative, ADeviceWithoutShapesRequestsNothing) {
  auto v12 = chained<VkPhysicalDeviceVulkan12Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  const CooperativeRequest none({}, v12);
  EXPECT_TRUE(none.extensions.empty());
  EXPECT_EQ(v12.pNext, nullptr);
  EXPECT_EQ(v12.vulkanMemoryModel | v12.shaderFloat16 | v12.shaderInt8, VkBool32{VK_FALSE});
}

TEST(Cooperative, ListedShapesRequestTheirExtensions) {
  auto v12 = chained<VkPhysicalDeviceVulkan12Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  const CooperativeRequest request(kDevices[1], v12);
  EXPECT_THAT(request.extensions,
              testing::ElementsAre(testing::StrEq(kCooperativeMatrixExtension), testing::StrEq(kBfloat16Extension)));
  std::vector<VkStructureType> chain;
  for (auto* at = static_cast<const VkBaseInStructure*>(v12.pNext); at != nullptr; at = at->pNext)
    chain.push_back(at->sType);
  EXPECT_THAT(chain, testing::UnorderedElementsAre(CooperativeMatrixFeatures::kType, Bfloat16Features::kType));
  EXPECT_EQ(v12.vulkanMemoryModel & v12.shaderFloat16 & v12.shaderInt8, VkBool32{VK_TRUE});
}

// Counts the instructions of a kernel by opcode.
std::map<uint32_t, int> opcodes(const Shader& shader) {
  std::map<uint32_t, int> out;
  for (uint32_t at = 5; at < shader.word_count; at += shader.words[at] >> 16) ++out[shader.words[at] & 0xFFFFu];
  return out;
}

TEST(Cooperative, KernelsHaveNothingButTheKhronosExtension) {
  for (const char* name : {"matmul_cooperative_f16", "matmul_cooperative_bf16", "matmul_cooperative_i8",
                           "matmul_cooperative_wide_f16", "matmul_cooperative_wide_bf16"}) {
    const Shader* shader = find_shader(name);
    ASSERT_NE(shader, nullptr) << name;
    EXPECT_TRUE(needs_full_subgroups({shader->words, shader->word_count})) << name;
    auto found = opcodes(*shader);
    EXPECT_EQ(found[4456], 3) << name;  // OpTypeCooperativeMatrixKHR for `a`, `b` and accumulators
    EXPECT_GT(found[4457], 0) << name;  // the instructions 4457 to 4459 load, store and multiply
    EXPECT_GT(found[4458], 0) << name;
    EXPECT_GT(found[4459], 0) << name;
    for (uint32_t nv = 5358; nv <= 5362; ++nv) EXPECT_EQ(found[nv], 0) << name;
  }
  const Shader* plain = find_shader("matmul_f16");
  ASSERT_NE(plain, nullptr);
  EXPECT_FALSE(needs_full_subgroups({plain->words, plain->word_count}));
}

}  // namespace

}  // namespace backplane::vulkan::test
