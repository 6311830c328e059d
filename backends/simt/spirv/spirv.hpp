// SPDX-License-Identifier: Apache-2.0
// Rewrites SPIR-V modules before a driver compiles them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace backplane::simt {

// Returns a copy of `module` whose only entry point is `function`, because drivers compile all
// entry points. The kernel's sub-groups have the width `width`. Returns nothing if `module` is not
// SPIR-V or has no such entry point.
std::vector<uint32_t> single_kernel(std::span<const uint32_t> module, std::string_view function, uint32_t width);

// The numeric types that a device may lack.
struct NumericTypes {
  bool f16 = false, f64 = false;
};
// Returns the types that `module` declares as capabilities.
NumericTypes types_of(std::span<const uint32_t> module);

}  // namespace backplane::simt
