// SPDX-License-Identifier: Apache-2.0
// Asks for the floating-point behaviour that a device offers beyond Vulkan's least: an execution mode in the SPIR-V. It is
// added when a pipeline is made, because a device that lacks the mode refuses code that names it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace backplane::vulkan {

struct FloatControls {
  bool round_to_even_f32 = false;  // results of f32 arithmetic and conversions round to nearest even
  bool preserve_nan_f32 = false;   // signed zeros, infinities and NaN are not assumed away
  // Subnormals are kept, as operands and results. Devices that can do so flush, where it is faster, unless this is asked.
  bool preserve_subnormals_f32 = false;
};

// The module with capabilities, extension and modes of VK_KHR_shader_float_controls (core in Vulkan 1.2) for its one entry
// point. Source: SPIR-V 1.6, sections 2.4 (logical layout) and 3.6 (execution modes).
std::vector<uint32_t> with_float_controls(std::span<const uint32_t> module, const FloatControls& controls);

}  // namespace backplane::vulkan
