// SPDX-License-Identifier: Apache-2.0
// The kernels, compiled to SPIR-V.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace backplane::simt {

// Returns the words of a module, or nothing if there is no such module.
std::span<const uint32_t> find_module(std::string_view name);

}  // namespace backplane::simt
