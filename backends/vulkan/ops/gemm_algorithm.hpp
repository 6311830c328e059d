// SPDX-License-Identifier: Apache-2.0
// The algorithms that multiply matrices: what a device supports, and what a setting requests.
// gemm.cpp chooses the tile size (Gemm::tiling_of) from those of shaders/sizes.h.
#pragma once

#include "runtime/physical_device.hpp"
#include "shaders/specialization.h"

namespace backplane::vulkan {

// The values are BACKPLANE_ALGORITHM_* of shaders/matmul.comp, which has one more for few rows.
enum class GemmAlgorithm : uint32_t {
  kDirect = BACKPLANE_ALGORITHM_DIRECT,      // each thread reads what it multiplies
  kShared = BACKPLANE_ALGORITHM_SHARED,      // tiles pass through shared memory
  kSubgroup = BACKPLANE_ALGORITHM_SUBGROUP,  // threads of a subgroup broadcast what they read
  kCooperative = 4,                          // cooperative matrices
  kDot = 5,                                  // as kShared, with four 8-bit integers multiplied at once
};

// Whether kernels can rely on subgroups that are full and have ballots, in workgroups of
// BACKPLANE_SUBGROUP_WORKGROUP threads.
bool supports_subgroup_kernels(const PhysicalDevice& device);

// The algorithm that BACKPLANE_VULKAN_MATMUL names, or the fastest if it is unset. UNSUPPORTED if
// the setting names none, or one that the device lacks.
kit::Result<GemmAlgorithm> choose_algorithm(const PhysicalDevice& device);

// `algorithm`, or the next best if it has no kernel for `dtype`.
GemmAlgorithm algorithm_for_dtype(GemmAlgorithm algorithm, uint32_t dtype, const PhysicalDevice& device);

}  // namespace backplane::vulkan
