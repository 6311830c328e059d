// SPDX-License-Identifier: Apache-2.0
#include "runtime/cooperative.hpp"

#include <backplane/tensor.h>

#include <algorithm>
#include <string_view>

#include "shaders/sizes.h"

namespace backplane::vulkan {

namespace {

constexpr uint32_t kGroup = BACKPLANE_MATRIX_GROUP;
// Returns the bytes of shared memory that a workgroup needs. Shared memory holds a tile of `a`, a tile of `b`, and one
// matrix of accumulators per subgroup. `lines` is the number of rows of the tile of `a` plus the number of columns of
// the tile of `b`. If the factors are i8, shared memory also holds an i32 sum per row of `a` and per column of `b`.
uint64_t shared_bytes(const MatrixShape& shape, uint32_t subgroup_size, uint64_t lines) {
  constexpr uint64_t kLine = BACKPLANE_MATRIX_DEPTH_BYTES + 16;
  const uint64_t line_sum = shape.dtype == BP_I8 ? sizeof(int32_t) : 0;
  return lines * (kLine + line_sum) + uint64_t{kGroup / subgroup_size} * shape.m * shape.n * sizeof(float);
}

// Returns the dtype of both factors (BP_*), or 0 if no kernel supports this combination of types.
uint32_t dtype_of(const CooperativeMatrixProperties& each) {
  const bool of_f32 = each.CType == MatrixComponent::kF32 && each.ResultType == MatrixComponent::kF32;
  const bool of_i32 = each.CType == MatrixComponent::kI32 && each.ResultType == MatrixComponent::kI32;
  if (each.scope != kSubgroupScope || each.AType != each.BType || each.saturatingAccumulation != VK_FALSE) return 0;
  if (each.AType == MatrixComponent::kF16 && of_f32) return BP_F16;
  if (each.AType == MatrixComponent::kBf16 && of_f32) return BP_BF16;
  return each.AType == MatrixComponent::kI8 && of_i32 ? BP_I8 : 0;
}

bool has(std::span<const VkExtensionProperties> extensions, std::string_view name) {
  return std::ranges::any_of(extensions, [&](const VkExtensionProperties& each) { return name == each.extensionName; });
}

}  // namespace

CooperativeMatrices CooperativeMatrices::read(const InstanceApi& api, VkPhysicalDevice handle,
                                              const VkPhysicalDeviceLimits& limits,
                                              std::span<const VkExtensionProperties> extensions) {
  const auto list = api.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR;
  if (list == nullptr || !has(extensions, kCooperativeMatrixExtension)) return {};
  auto bfloat16 = chained<Bfloat16Features>(Bfloat16Features::kType);
  const bool lists_bfloat16 = has(extensions, kBfloat16Extension);
  auto matrix =
      chained<CooperativeMatrixFeatures>(CooperativeMatrixFeatures::kType, lists_bfloat16 ? &bfloat16 : nullptr);
  auto v12 = chained<VkPhysicalDeviceVulkan12Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, &matrix);
  auto features = chained<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &v12);
  api.vkGetPhysicalDeviceFeatures2(handle, &features);
  auto stages = chained<CooperativeMatrixStages>(CooperativeMatrixStages::kType);
  auto subgroups =
      chained<VkPhysicalDeviceSubgroupProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES, &stages);
  auto properties = chained<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &subgroups);
  api.vkGetPhysicalDeviceProperties2(handle, &properties);

  CooperativeMatrices out;
  out.subgroup_size = subgroups.subgroupSize;
  out.shared_memory = limits.maxComputeSharedMemorySize;
  out.bfloat16 = bfloat16.shaderBFloat16Type == VK_TRUE && bfloat16.shaderBFloat16CooperativeMatrix == VK_TRUE;
  const bool usable = matrix.cooperativeMatrix == VK_TRUE && v12.vulkanMemoryModel == VK_TRUE &&
                      (stages.cooperativeMatrixSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
                      limits.maxComputeWorkGroupInvocations >= kGroup && limits.maxComputeWorkGroupSize[0] >= kGroup &&
                      out.subgroup_size != 0 && kGroup % out.subgroup_size == 0;
  if (!usable) return {};
  uint32_t count = 0;
  if (list(handle, &count, nullptr) != VK_SUCCESS) return {};
  std::vector<CooperativeMatrixProperties> all(
      count, chained<CooperativeMatrixProperties>(CooperativeMatrixProperties::kType));
  if (const VkResult result = list(handle, &count, all.data()); result != VK_SUCCESS && result != VK_INCOMPLETE)
    return {};
  all.resize(count);
  for (const CooperativeMatrixProperties& each : all) {
    const MatrixShape shape{dtype_of(each), each.MSize, each.NSize, each.KSize};
    const bool typed = (shape.dtype == BP_F16 && v12.shaderFloat16 == VK_TRUE) ||
                       (shape.dtype == BP_I8 && v12.shaderInt8 == VK_TRUE) || (shape.dtype == BP_BF16 && out.bfloat16);
    if (typed && shared_bytes(shape, out.subgroup_size, 2 * BACKPLANE_MATRIX_LARGE_TILE) <= out.shared_memory)
      out.shapes.push_back(shape);
  }
  return out;
}

std::optional<MatrixTiling> CooperativeMatrices::tiling(uint32_t dtype, uint32_t rows, uint32_t columns) const {
  const uint32_t depth = BACKPLANE_MATRIX_DEPTH_BYTES / (dtype == BP_I8 ? 1 : 2);
  std::optional<MatrixTiling> best;
  const auto products = [](const MatrixShape& shape) { return uint64_t{shape.m} * shape.n * shape.k; };
  for (const MatrixShape& shape : shapes) {
    // m, n and k must be multiples of four, so that each row or column of a matrix fills whole 32-bit words of shared
    // memory. k must also divide the depth of a tile.
    if (shape.dtype != dtype || shape.m % 4 != 0 || shape.n % 4 != 0 || shape.k % 4 != 0 || depth % shape.k != 0)
      continue;
    if (best && products(shape) <= products(best->shape)) continue;
    // Each subgroup computes one part of the tile. A subgroup reads the fewest values if its part
    // is as square as possible.
    const uint32_t subgroups = kGroup / subgroup_size;
    uint32_t least = UINT32_MAX;
    for (uint32_t m = 1; m <= subgroups; m *= 2) {
      if (subgroups % m != 0 || rows % (m * shape.m) != 0 || columns % (subgroups / m * shape.n) != 0) continue;
      const uint32_t half_edge = rows / m + columns / (subgroups / m);
      if (half_edge >= least) continue;
      least = half_edge;
      best = {shape, subgroup_size, m, rows, columns};
    }
  }
  return best;
}

std::optional<MatrixTiling> CooperativeMatrices::wide_tiling(uint32_t dtype) const {
  constexpr uint32_t kRows = BACKPLANE_MATRIX_WIDE_TILE_M, kColumns = BACKPLANE_MATRIX_WIDE_TILE_N;
  constexpr uint32_t kVector = 8;  // number of 16-bit elements in 16 bytes
  if (dtype != BP_F16 && dtype != BP_BF16) return {};
  const auto found = tiling(dtype, kRows, kColumns);
  if (!found || found->shape.m % kVector != 0 || found->shape.n % kVector != 0 || found->shape.k % kVector != 0 ||
      shared_bytes(found->shape, subgroup_size, kRows + kColumns) > shared_memory)
    return {};
  return found;
}

CooperativeRequest::CooperativeRequest(const CooperativeMatrices& matrices, VkPhysicalDeviceVulkan12Features& v12) {
  const auto uses = [&](uint32_t dtype) {
    return std::ranges::any_of(matrices.shapes, [&](const MatrixShape& each) { return each.dtype == dtype; });
  };
  if (matrices.shapes.empty()) return;
  v12.vulkanMemoryModel = VK_TRUE;
  v12.shaderFloat16 = uses(BP_F16) ? VK_TRUE : VK_FALSE;
  v12.shaderInt8 = uses(BP_I8) ? VK_TRUE : VK_FALSE;
  matrix_ = chained<CooperativeMatrixFeatures>(CooperativeMatrixFeatures::kType, v12.pNext);
  matrix_.cooperativeMatrix = VK_TRUE;
  v12.pNext = &matrix_;
  extensions.push_back(kCooperativeMatrixExtension);
  if (!uses(BP_BF16)) return;
  bfloat16_ = chained<Bfloat16Features>(Bfloat16Features::kType, v12.pNext);
  bfloat16_.shaderBFloat16Type = bfloat16_.shaderBFloat16CooperativeMatrix = VK_TRUE;
  v12.pNext = &bfloat16_;
  extensions.push_back(kBfloat16Extension);
}

}  // namespace backplane::vulkan
