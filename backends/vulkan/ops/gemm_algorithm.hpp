// SPDX-License-Identifier: Apache-2.0
// The GEMM algorithms, and the choice of an algorithm for a device. Gemm::tiling_of chooses the
// tile size from the sizes in shaders/sizes.h.
#pragma once

#include "runtime/physical_device.hpp"
#include "shaders/specialization.h"

namespace backplane::vulkan {

// The first three values are BACKPLANE_ALGORITHM_*, which shaders/matmul.comp uses. Value 3 is
// reserved for the shader's algorithm for few rows (BACKPLANE_ALGORITHM_SKINNY).
enum class GemmAlgorithm : uint32_t {
  kDirect = BACKPLANE_ALGORITHM_DIRECT,      // each thread reads its operands from memory
  kShared = BACKPLANE_ALGORITHM_SHARED,      // tiles pass through shared memory
  kSubgroup = BACKPLANE_ALGORITHM_SUBGROUP,  // threads of a subgroup broadcast the values that they read
  kCooperative = 4,                          // uses VK_KHR_cooperative_matrix
  kDot = 5,                                  // like kShared, with dot products of four 8-bit integers
  // Like kCooperative, and uses the kernels with wide tiles, which no GPU has certified. The constructor of Gemm
  // handles this value, and algorithm_for_dtype() replaces it by kCooperative.
  kWide = 6,
};

// Returns whether workgroups of BACKPLANE_SUBGROUP_WORKGROUP threads have full subgroups with
// ballots.
bool supports_subgroup_kernels(const PhysicalDevice& device);

// Returns the algorithm that the environment variable BACKPLANE_VULKAN_MATMUL names. If the
// variable is unset, returns kSubgroup or kDirect for a CPU, and kCooperative for any GPU, because
// algorithm_for_dtype() replaces algorithms that the GPU lacks. Returns UNSUPPORTED if the value is
// not an algorithm, or if the device does not support the algorithm.
kit::Result<GemmAlgorithm> choose_algorithm(const PhysicalDevice& device);

// Returns `algorithm`, or the next best algorithm if the device cannot use `algorithm` for `dtype`.
// For kWide, returns the result for kCooperative.
GemmAlgorithm algorithm_for_dtype(GemmAlgorithm algorithm, uint32_t dtype, const PhysicalDevice& device);

}  // namespace backplane::vulkan
