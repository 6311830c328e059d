// SPDX-License-Identifier: Apache-2.0
// The plugin's own kernels, which use tensor cores.
#pragma once

#include "gpu_host/units.hpp"

namespace backplane::cuda {

// A bit of Limits::matrix_instructions: mma.sync for f16 and bf16, ldmatrix and cp.async, since compute capability 8.0.
inline constexpr uint32_t kTensorCores = 1;

// The environment variable that turns on the kernels.
inline constexpr const char* kTensorKernels = "BACKPLANE_CUDA_TENSOR_KERNELS";
// Returns the variable's value, or INVALID_ARGUMENT if the plugin does not accept it.
kit::Result<bool> tensor_kernels_are_on();

const gpu_host::UnitKernels& tensor_kernels();

}  // namespace backplane::cuda
