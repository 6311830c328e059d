// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm_algorithm.hpp"

#include <backplane/tensor.h>

#include <algorithm>
#include <cstdlib>

#include "shaders/sizes.h"

namespace backplane::vulkan {

namespace {

constexpr std::pair<std::string_view, Way> kWays[] = {{"direct", Way::kDirect},
                                                      {"shared", Way::kShared},
                                                      {"subgroup", Way::kSubgroup},
                                                      {"cooperative", Way::kCooperative},
                                                      {"dot", Way::kDot}};

bool takes_matrices(const PhysicalDevice& device) {
  return std::ranges::any_of(device.matrices.shapes, [&](const MatrixShape& each) {
    return device.matrices.tiling(each.dtype, BACKPLANE_MATRIX_TILE).has_value();
  });
}

// A CPU's shared memory is memory like any other: passing tiles through it only adds work. It has no matrix hardware to gain by.
Way way_of_cpu(const PhysicalDevice& device) { return takes_lanes(device) ? Way::kSubgroup : Way::kDirect; }

}  // namespace

bool takes_lanes(const PhysicalDevice& device) {
  return (device.is_cpu() || device.full_subgroups) && device.lanes >= BACKPLANE_LANES &&
         BACKPLANE_LANE_GROUP % device.lanes == 0;
}

kit::Result<Way> way_of(const PhysicalDevice& device) {
  const char* setting = std::getenv("BACKPLANE_VULKAN_MATMUL");
  if (setting == nullptr || *setting == '\0') return device.is_cpu() ? way_of_cpu(device) : Way::kCooperative;
  const auto* found = std::ranges::find(kWays, std::string_view(setting), &std::pair<std::string_view, Way>::first);
  if (found == std::end(kWays)) {
    return kit::unsupported("BACKPLANE_VULKAN_MATMUL is ", setting,
                            "; it may be direct, shared, subgroup, cooperative or dot, or unset");
  }
  const Way way = found->second;
  if (way == Way::kCooperative && !takes_matrices(device)) {
    return kit::unsupported(
        "BACKPLANE_VULKAN_MATMUL is cooperative, and ", device.properties.deviceName,
        " lists no matrices of f16, bf16 or i8 for subgroups (VK_KHR_cooperative_matrix); unset it");
  }
  if (way == Way::kDot && !device.dots) {
    return kit::unsupported("BACKPLANE_VULKAN_MATMUL is dot, and ", device.properties.deviceName,
                            " has no VK_KHR_shader_integer_dot_product; unset it");
  }
  if (way == Way::kSubgroup && !takes_lanes(device)) {
    return kit::unsupported("BACKPLANE_VULKAN_MATMUL is subgroup, and ", device.properties.deviceName,
                            " has no subgroups of 8 to 64 lanes with ballots; unset it");
  }
  return way;
}

Way way_of_dtype(Way way, uint32_t dtype, const PhysicalDevice& device) {
  const bool byte = dtype == BP_I8 || dtype == BP_U8;
  if (way == Way::kCooperative && !device.matrices.tiling(dtype, BACKPLANE_MATRIX_TILE))
    way = (dtype == BP_I8 && device.fast_dots_i8) || (dtype == BP_U8 && device.fast_dots_u8) ? Way::kDot : Way::kShared;
  return way == Way::kDot && !byte ? Way::kShared : way;
}

}  // namespace backplane::vulkan
