// SPDX-License-Identifier: Apache-2.0
// Helpers that operators share: dtypes, names of shaders, and the launch of elementwise kernels.
#pragma once

#include "ops/loop_nest.hpp"

namespace backplane::vulkan {

// The dtypes that kernels compute with. f64 is excluded, because kernels only copy and cast f64.
inline constexpr uint64_t kComputed = BP_SET_ALL & ~BP_DTYPE_BIT(BP_F64);
inline constexpr uint64_t kFloats = BP_SET_FLOATS & kComputed;

// Maximum number of iterations per thread, provided that the work can be divided. A device may
// abort a kernel that runs for seconds. Mesa's CPU driver ends an invocation after its loops have
// run 65,535 iterations in total.
inline constexpr int64_t kMaxSteps = 16384;

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class Body>
void for_dtypes(uint64_t set, const Body& body) {
  for (uint32_t dtype = 0; dtype < BP_DTYPE_LIMIT; ++dtype) {
    if (kit::in_set(set, dtype)) body(dtype);
  }
}

// The name of a shader consists of an entry of the table in shaders/meson.build and a suffix. The
// suffix is the dtype or, for copy_shader(), the size of the dtype in bytes.
inline std::string shader_name(const char* name, uint32_t dtype) {
  return kit::text(name, "_", kit::dtype_name(dtype));
}
inline std::string copy_shader(uint32_t dtype, const char* name = "copy") {
  return kit::text(name, "_", kit::dtype_bytes(dtype));
}

// Returns element `i` of `views`, or null if that operand is absent.
inline const View* given(std::span<const View> views, std::size_t i) {
  return i < views.size() && views[i].dtype != 0 ? &views[i] : nullptr;
}

inline constexpr auto kNoExtra = [](Params&) {};
// Enqueues a kernel over the elements of `nest`, with one workgroup per `per_group` elements, in
// dispatches of at most `max_count` elements. `fill_extra` writes parameters that are specific to
// the kernel.
template <class FillExtra = decltype(kNoExtra)>
kit::Status launch_elementwise(Stream& stream, VkPipeline pipeline, const LoopNest& nest, const Call& call,
                               const FillExtra& fill_extra = kNoExtra, uint32_t per_group = kGroup,
                               int64_t max_count = LoopNest::kMaxCount) {
  const Accesses accesses = accesses_of(call);
  return nest.for_slices(
      [&](const LoopNest& slice, int64_t) {
        const Stream::Dispatch dispatch{
            pipeline, {groups_for(static_cast<uint64_t>(slice.count()), per_group), 1, 1}, accesses};
        return stream.dispatch(dispatch, [&](Params& params, uint64_t address) {
          slice.fill(params, address);
          fill_scalars(params, address, call);
          fill_extra(params);
        });
      },
      max_count);
}

// Returns the number of elements per workgroup for kernels that process four elements at once
// (shaders/vec4_loop.glsl). The number is larger on a CPU, to amortise the setup of each thread.
// The elements of a workgroup must fit into the cache, because a CPU runs the threads of a
// workgroup one after another.
inline uint32_t vec4_elements_per_group(const PhysicalDevice& device) { return (device.is_cpu() ? 32 : 4) * kGroup; }

// Returns the maximum number of elements per dispatch of a kernel that needs `steps` iterations per
// element.
constexpr int64_t max_elements(int64_t steps, int64_t per_group = kGroup) {
  return std::max<int64_t>(kMaxSteps / steps, 1) * kMaxGroups * per_group;
}

}  // namespace backplane::vulkan
