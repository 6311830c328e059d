// SPDX-License-Identifier: Apache-2.0
// The kernels, compiled for the architectures of the build option hip_architectures.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace backplane::hip {

// Returns the bundle of a module, or nothing if there is no such module.
std::span<const std::byte> find_image(std::string_view name);

}  // namespace backplane::hip
