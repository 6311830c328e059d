// SPDX-License-Identifier: Apache-2.0
// Cooperative matrices (VK_KHR_cooperative_matrix): what a device multiplies by them, and how a kernel divides its work for it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runtime/api.hpp"

namespace backplane::vulkan {

// A multiplication that a subgroup does at once: m x n sums of k products each; sums are f32, or i32 of i8.
struct MatrixShape {
  uint32_t dtype;  // of both factors: BP_F16, BP_BF16 or BP_I8
  uint32_t m, n, k;
};

// How shaders/matmul_cooperative.comp makes tile x tile sums in a workgroup.
struct MatrixTiling {
  MatrixShape shape;
  uint32_t subgroup_size;  // of a subgroup
  uint32_t subgroups_m;    // along the rows
  uint32_t tile;
};

struct CooperativeMatrices {
  // That kernels can use; none where the extension, or a feature beside it, is lacking.
  std::vector<MatrixShape> shapes;
  uint32_t subgroup_size = 0;  // of a subgroup
  bool bfloat16 = false;       // matrices may be bf16

  // Of a device that can be asked for full subgroups: their pipelines must.
  static CooperativeMatrices read(const InstanceApi& api, VkPhysicalDevice handle, const VkPhysicalDeviceLimits& limits,
                                  std::span<const VkExtensionProperties> extensions);

  // By the largest shape for `dtype` that divides such tiles evenly among subgroups; none: there is no such shape.
  std::optional<MatrixTiling> tiling(uint32_t dtype, uint32_t tile) const;
};

// What is asked for where a device is created: nothing, if `matrices` has no shapes.
class CooperativeRequest {
 public:
  // Chains its features to `v12`, and sets those of `v12` that kernels need. Lives until the device is made.
  CooperativeRequest(const CooperativeMatrices& matrices, VkPhysicalDeviceVulkan12Features& v12);
  CooperativeRequest(const CooperativeRequest&) = delete;
  CooperativeRequest& operator=(const CooperativeRequest&) = delete;

  std::vector<const char*> extensions;

 private:
  CooperativeMatrixFeatures matrix_{};
  Bfloat16Features bfloat16_{};
};

}  // namespace backplane::vulkan
