// SPDX-License-Identifier: Apache-2.0
// Requests floating-point guarantees that exceed Vulkan's minimum, by execution modes in the
// SPIR-V. Modes are added when a pipeline is compiled, because a device that lacks a mode rejects
// modules that name it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace backplane::vulkan {

struct FloatControls {
  bool round_to_even_f32 = false;  // results of f32 arithmetic and conversions round to nearest even
  bool preserve_nan_f32 = false;   // signed zeros, infinities and NaN are preserved
  // Subnormal operands and results are preserved. Otherwise devices may flush them to zero.
  bool preserve_subnormals_f32 = false;
};

// Returns the module with the capabilities, extension and modes of VK_KHR_shader_float_controls
// (core in Vulkan 1.2) for its single entry point. Source: SPIR-V 1.6, sections 2.4 (logical
// layout) and 3.6 (execution modes).
std::vector<uint32_t> with_float_controls(std::span<const uint32_t> module, const FloatControls& controls);

}  // namespace backplane::vulkan
