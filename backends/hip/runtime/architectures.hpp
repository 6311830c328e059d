// SPDX-License-Identifier: Apache-2.0
// The architectures for which the plugin has kernels.
#pragma once

#include <string_view>

namespace backplane::hip {

// The build option hip_architectures, separated by commas. An architecture is gfxN, with optional features such as
// :xnack+.
inline constexpr std::string_view kArchitectures = BACKPLANE_HIP_ARCHITECTURES;

// Returns whether a device of the architecture `device` can run kernels that were compiled for one of `architectures`.
// The names without features are equal then, and the device has each feature of the kernels.
bool can_run(std::string_view architectures, std::string_view device);

}  // namespace backplane::hip
