// SPDX-License-Identifier: Apache-2.0
// The architectures for which the plugin has kernels.
#pragma once

#include <string_view>

namespace backplane::cuda {

// The build option nvcc_architectures, separated by commas: sm_XY for machine code, compute_XY for PTX.
inline constexpr std::string_view kArchitectures = BACKPLANE_CUDA_ARCHITECTURES;

// Returns whether a device of the compute capability `major`.`minor` can run kernels that were compiled
// for one of `architectures`. Machine code runs on devices with the same major version and the same or a
// later minor version. A driver compiles PTX for the same or a later compute capability.
bool can_run(std::string_view architectures, int major, int minor);

}  // namespace backplane::cuda
