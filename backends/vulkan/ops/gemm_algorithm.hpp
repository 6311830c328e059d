// SPDX-License-Identifier: Apache-2.0
// The algorithms that multiply matrices, and the choice of one by device and setting.
// Gemm::tiling_of chooses the tile size from the sizes in shaders/sizes.h.
#pragma once

#include "runtime/physical_device.hpp"
#include "shaders/specialization.h"

namespace backplane::vulkan {

// The first values are BACKPLANE_ALGORITHM_* of shaders/matmul.comp, which has an additional one
// for few rows.
enum class GemmAlgorithm : uint32_t {
  kDirect = BACKPLANE_ALGORITHM_DIRECT,      // each thread reads what it multiplies
  kShared = BACKPLANE_ALGORITHM_SHARED,      // tiles pass through shared memory
  kSubgroup = BACKPLANE_ALGORITHM_SUBGROUP,  // threads of a subgroup broadcast what they read
  kCooperative = 4,                          // cooperative matrices
  kDot = 5,                                  // like kShared, but multiplies four 8-bit integers at once
};

// Whether workgroups of BACKPLANE_SUBGROUP_WORKGROUP threads have full subgroups with ballots.
bool supports_subgroup_kernels(const PhysicalDevice& device);

// The algorithm that BACKPLANE_VULKAN_MATMUL names, or the fastest if the variable is unset.
// UNSUPPORTED if it does not name an algorithm, or names one that the device lacks.
kit::Result<GemmAlgorithm> choose_algorithm(const PhysicalDevice& device);

// Returns `algorithm`, or the next best algorithm if `algorithm` has no kernel for `dtype`.
GemmAlgorithm algorithm_for_dtype(GemmAlgorithm algorithm, uint32_t dtype, const PhysicalDevice& device);

}  // namespace backplane::vulkan
