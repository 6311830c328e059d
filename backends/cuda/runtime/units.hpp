// SPDX-License-Identifier: Apache-2.0
// The plugin's own kernels, which use tensor cores.
#pragma once

#include "gpu_host/units.hpp"

namespace backplane::cuda {

// Bits of Limits::matrix_instructions. kTensorCores: mma.sync for f16 and bf16, ldmatrix and cp.async, since compute
// capability 8.0. kWarpgroups: wgmma, only for compute capability 9.0. kTensorMaps: cp.async.bulk.tensor with tensor
// maps of the driver. kTrial permits kernels that no GPU has certified.
inline constexpr uint32_t kTensorCores = 1, kWarpgroups = 2, kTrial = 4, kTensorMaps = 8;

// The environment variable that restricts the kernels.
inline constexpr const char* kTensorKernels = "BACKPLANE_CUDA_TENSOR_KERNELS";
// Returns the instructions that the variable permits, or INVALID_ARGUMENT if the plugin does not accept its value.
kit::Result<uint32_t> permitted_instructions();

// The environment variable for the number of multiprocessors on which choices of kernels are based. With few
// multiprocessors, small calls use the kernels and the loops over tiles that otherwise only large calls use.
inline constexpr const char* kComputeUnits = "BACKPLANE_CUDA_COMPUTE_UNITS";
// Returns the value of the variable, or `actual` if the variable is not set. Returns INVALID_ARGUMENT if the value is
// not a number from 1 to 65535.
kit::Result<uint32_t> assumed_compute_units(uint32_t actual);

const gpu_host::UnitKernels& tensor_kernels();

}  // namespace backplane::cuda
