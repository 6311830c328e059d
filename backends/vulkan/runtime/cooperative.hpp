// SPDX-License-Identifier: Apache-2.0
// Cooperative matrices (VK_KHR_cooperative_matrix): the shapes that a device supports, and the
// tiling of a kernel's work.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runtime/api.hpp"

namespace backplane::vulkan {

// The shape of the multiplication that a subgroup does at once: m x n sums of k products. Sums are
// f32, or i32 for i8.
struct MatrixShape {
  uint32_t dtype;  // of both factors: BP_F16, BP_BF16 or BP_I8
  uint32_t m, n, k;
};

// How a workgroup of shaders/matmul_cooperative.comp computes tile x tile outputs.
struct MatrixTiling {
  MatrixShape shape;
  uint32_t subgroup_size;  // of a subgroup
  uint32_t subgroups_m;    // subgroups along the rows of the tile
  uint32_t tile;
};

struct CooperativeMatrices {
  // The shapes that kernels can use; empty without the extension or the features that kernels need.
  std::vector<MatrixShape> shapes;
  uint32_t subgroup_size = 0;  // of a subgroup
  bool bfloat16 = false;       // matrices may be bf16

  // Call only for a device that supports full subgroups: the pipelines require them.
  static CooperativeMatrices read(const InstanceApi& api, VkPhysicalDevice handle, const VkPhysicalDeviceLimits& limits,
                                  std::span<const VkExtensionProperties> extensions);

  // A tiling by the largest shape for `dtype` that divides tile x tile outputs evenly among
  // subgroups. None if there is no such shape.
  std::optional<MatrixTiling> tiling(uint32_t dtype, uint32_t tile) const;
};

// The extensions and features to enable when a device is created. There are none if `matrices` has
// no shapes.
class CooperativeRequest {
 public:
  // Chains feature structs to `v12`, and enables the features of `v12` that kernels need. The
  // object must live until the device has been created.
  CooperativeRequest(const CooperativeMatrices& matrices, VkPhysicalDeviceVulkan12Features& v12);
  CooperativeRequest(const CooperativeRequest&) = delete;
  CooperativeRequest& operator=(const CooperativeRequest&) = delete;

  std::vector<const char*> extensions;

 private:
  CooperativeMatrixFeatures matrix_{};
  Bfloat16Features bfloat16_{};
};

}  // namespace backplane::vulkan
