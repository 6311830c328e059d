// SPDX-License-Identifier: Apache-2.0
// The plugin's own kernels, compiled to SPIR-V. The functions of warp_mma.h are emulated in them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace backplane::cuda::test_driver {

// Returns the words of a module, or nothing if there is no such module.
std::span<const uint32_t> find_own_module(std::string_view name);

}  // namespace backplane::cuda::test_driver
