// SPDX-License-Identifier: Apache-2.0
// Adds execution modes to SPIR-V modules. The modes request floating-point guarantees that Vulkan
// does not require. The plugin adds the modes when it compiles a pipeline, because a device that
// lacks a mode rejects modules with that mode.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace backplane::vulkan {

struct FloatControls {
  bool round_to_even_f32 = false;  // results of f32 arithmetic and conversions round to nearest even
  bool preserve_nan_f32 = false;   // signed zeros, infinities and NaN are preserved
  // Subnormal operands and results are preserved. Otherwise devices may flush subnormals to zero.
  bool preserve_subnormals_f32 = false;
};

// Returns a copy of `module` with the requested modes of VK_KHR_shader_float_controls (core in
// Vulkan 1.2) for its single entry point. Adds the capabilities and the extension that these modes
// need. Source: SPIR-V 1.6, sections 2.4 (logical layout) and 3.6 (execution modes).
std::vector<uint32_t> with_float_controls(std::span<const uint32_t> module, const FloatControls& controls);

}  // namespace backplane::vulkan
