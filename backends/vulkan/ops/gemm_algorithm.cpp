// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm_algorithm.hpp"

#include <backplane/tensor.h>

#include <algorithm>
#include <cstdlib>

#include "shaders/sizes.h"

namespace backplane::vulkan {

namespace {

constexpr std::pair<std::string_view, GemmAlgorithm> kAlgorithms[] = {
    {"direct", GemmAlgorithm::kDirect},     {"shared", GemmAlgorithm::kShared},
    {"subgroup", GemmAlgorithm::kSubgroup}, {"cooperative", GemmAlgorithm::kCooperative},
    {"dot", GemmAlgorithm::kDot},           {"wide", GemmAlgorithm::kWide}};

bool has_cooperative_matrices(const PhysicalDevice& device) {
  return std::ranges::any_of(device.matrices.shapes, [&](const MatrixShape& each) {
    return device.matrices.tiling(each.dtype, BACKPLANE_MATRIX_TILE, BACKPLANE_MATRIX_TILE).has_value();
  });
}

// Returns an algorithm without tiles in shared memory. A CPU's shared memory is ordinary memory, so
// tiles only add copies. A CPU also lacks fast matrix hardware.
GemmAlgorithm algorithm_for_cpu(const PhysicalDevice& device) {
  return supports_subgroup_kernels(device) ? GemmAlgorithm::kSubgroup : GemmAlgorithm::kDirect;
}

}  // namespace

bool supports_subgroup_kernels(const PhysicalDevice& device) {
  return (device.is_cpu() || device.full_subgroups) && device.subgroup_size >= BACKPLANE_MIN_SUBGROUP &&
         BACKPLANE_SUBGROUP_WORKGROUP % device.subgroup_size == 0;
}

kit::Result<GemmAlgorithm> choose_algorithm(const PhysicalDevice& device) {
  const char* setting = std::getenv("BACKPLANE_VULKAN_MATMUL");
  if (setting == nullptr || *setting == '\0')
    return device.is_cpu() ? algorithm_for_cpu(device) : GemmAlgorithm::kCooperative;
  const auto* found =
      std::ranges::find(kAlgorithms, std::string_view(setting), &std::pair<std::string_view, GemmAlgorithm>::first);
  if (found == std::end(kAlgorithms)) {
    return kit::unsupported("BACKPLANE_VULKAN_MATMUL is ", setting,
                            "; it may be direct, shared, subgroup, cooperative, dot or wide, or unset");
  }
  const GemmAlgorithm algorithm = found->second;
  if (algorithm == GemmAlgorithm::kCooperative && !has_cooperative_matrices(device)) {
    return kit::unsupported(
        "BACKPLANE_VULKAN_MATMUL is cooperative, and ", device.properties.deviceName,
        " lists no matrices of f16, bf16 or i8 for subgroups (VK_KHR_cooperative_matrix); unset it");
  }
  if (algorithm == GemmAlgorithm::kDot && !device.has_dot) {
    return kit::unsupported("BACKPLANE_VULKAN_MATMUL is dot, and ", device.properties.deviceName,
                            " has no VK_KHR_shader_integer_dot_product; unset it");
  }
  if (algorithm == GemmAlgorithm::kSubgroup && !supports_subgroup_kernels(device)) {
    return kit::unsupported("BACKPLANE_VULKAN_MATMUL is subgroup, and ", device.properties.deviceName,
                            " has no subgroups of 8 to 64 lanes with ballots; unset it");
  }
  return algorithm;
}

GemmAlgorithm algorithm_for_dtype(GemmAlgorithm algorithm, uint32_t dtype, const PhysicalDevice& device) {
  const bool byte = dtype == BP_I8 || dtype == BP_U8;
  if (algorithm == GemmAlgorithm::kWide) algorithm = GemmAlgorithm::kCooperative;
  if (algorithm == GemmAlgorithm::kCooperative &&
      !device.matrices.tiling(dtype, BACKPLANE_MATRIX_TILE, BACKPLANE_MATRIX_TILE)) {
    const bool fast_dot = (dtype == BP_I8 && device.fast_dot_i8) || (dtype == BP_U8 && device.fast_dot_u8);
    algorithm = fast_dot ? GemmAlgorithm::kDot : GemmAlgorithm::kShared;
  }
  return algorithm == GemmAlgorithm::kDot && !byte ? GemmAlgorithm::kShared : algorithm;
}

}  // namespace backplane::vulkan
