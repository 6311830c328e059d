// SPDX-License-Identifier: Apache-2.0
// Cooperative matrices (VK_KHR_cooperative_matrix): the matrix shapes that a device supports, and
// the choice of a tiling.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runtime/api.hpp"

namespace backplane::vulkan {

// Shape of one matrix multiplication by a subgroup: m x n sums of k products each. The sums are i32
// if the factors are i8, and otherwise f32.
struct MatrixShape {
  uint32_t dtype;  // dtype of both factors: BP_F16, BP_BF16 or BP_I8
  uint32_t m, n, k;
};

// Division of a tile's outputs among the subgroups of a workgroup
// (shaders/matmul_cooperative.comp).
struct MatrixTiling {
  MatrixShape shape;
  uint32_t subgroup_size;  // threads per subgroup
  uint32_t subgroups_m;    // number of subgroups along dimension m of the tile
  uint32_t rows, columns;  // extents of the tile
};

struct CooperativeMatrices {
  // Shapes that kernels can use. Empty if the device lacks VK_KHR_cooperative_matrix or a feature
  // that these kernels need.
  std::vector<MatrixShape> shapes;
  uint32_t subgroup_size = 0;  // threads per subgroup
  bool bfloat16 = false;       // whether factors may be bf16
  uint64_t shared_memory = 0;  // bytes of shared memory per workgroup

  // Queries the driver. The device must support full subgroups, because the pipelines require them.
  static CooperativeMatrices read(const InstanceApi& api, VkPhysicalDevice handle, const VkPhysicalDeviceLimits& limits,
                                  std::span<const VkExtensionProperties> extensions);

  // Returns the tiling with the largest shape for `dtype` that divides rows x columns outputs evenly
  // among the subgroups. Returns nothing if there is no such shape.
  std::optional<MatrixTiling> tiling(uint32_t dtype, uint32_t rows, uint32_t columns) const;
  // Returns the tiling for shaders/matmul_cooperative_wide.comp, or nothing if the device cannot use
  // this kernel.
  std::optional<MatrixTiling> wide_tiling(uint32_t dtype) const;
};

// Extensions and features for cooperative matrices, to be enabled when a VkDevice is created. The
// request is empty if the device has no usable matrix shapes.
class CooperativeRequest {
 public:
  // Chains feature structs to `v12`, and enables the features of `v12` that kernels with
  // cooperative matrices need. The CooperativeRequest owns the chained structs, so it must exist
  // until the VkDevice has been created.
  CooperativeRequest(const CooperativeMatrices& matrices, VkPhysicalDeviceVulkan12Features& v12);
  CooperativeRequest(const CooperativeRequest&) = delete;
  CooperativeRequest& operator=(const CooperativeRequest&) = delete;

  std::vector<const char*> extensions;

 private:
  CooperativeMatrixFeatures matrix_{};
  Bfloat16Features bfloat16_{};
};

}  // namespace backplane::vulkan
