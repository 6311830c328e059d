// SPDX-License-Identifier: Apache-2.0
// The operators by family, and what they share.
#pragma once

#include "ops/loop_nest.hpp"

namespace backplane::vulkan {

// Dtypes that kernels compute with; f64 is moved and cast only.
inline constexpr uint64_t kComputed = BP_SET_ALL & ~BP_DTYPE_BIT(BP_F64);
inline constexpr uint64_t kFloats = BP_SET_FLOATS & kComputed;

// Most iterations of a loop in a kernel, where the work can be divided: a device may end a kernel that runs for seconds, and
// Mesa's CPU driver ends every invocation after 65,535 iterations of its loops together.
inline constexpr int64_t kMostSteps = 16384;

template <class Body>
void for_dtypes(uint64_t set, const Body& body) {
  for (uint32_t dtype = 0; dtype < BP_DTYPE_LIMIT; ++dtype) {
    if (kit::in_set(set, dtype)) body(dtype);
  }
}

// The shader of `family` for a dtype, or for its width where bytes are only moved.
inline std::string shader_name(const char* family, uint32_t dtype) {
  return kit::text(family, "_", kit::dtype_name(dtype));
}
inline std::string move_name(uint32_t dtype, const char* family = "copy") {
  return kit::text(family, "_", kit::dtype_bytes(dtype));
}

// Enqueues a thread for each element of `nest`, or a workgroup for `per_group` of them, at most `most` at once; `more` writes what
// else the kernel is told.
inline constexpr auto kNothingMore = [](Params&) {};
template <class More = decltype(kNothingMore)>
kit::Status launch_elementwise(Stream& stream, VkPipeline pipeline, const Nest& nest, const Call& call,
                               const More& more = kNothingMore, uint32_t per_group = kGroup,
                               int64_t most = Nest::kMostCount) {
  const Accesses accesses = accesses_of(call);
  return nest.for_parts(
      [&](const Nest& part, int64_t) {
        const Stream::Dispatch dispatch{
            pipeline, {groups_for(static_cast<uint64_t>(part.count()), per_group), 1, 1}, accesses};
        return stream.dispatch(dispatch, [&](Params& params, uint64_t address) {
          part.fill(params, address);
          fill_scalars(params, address, call);
          more(params);
        });
      },
      most);
}

// Elements of a workgroup whose threads take four at once (shaders/vec4_loop.glsl). On a CPU more, so that what a thread does once
// counts less; but no more than its caches hold, since its threads go over the same part one after the other.
inline uint32_t part_by_four(const PhysicalDevice& device) { return (device.is_cpu() ? 32 : 4) * kGroup; }

// Elements that a dispatch may have whose kernel takes `steps` iterations for each.
constexpr int64_t most_elements(int64_t steps, int64_t per_group = kGroup) {
  return std::max<int64_t>(kMostSteps / steps, 1) * kMostGroups * per_group;
}

void add_elementwise(Operators& operators, const PhysicalDevice& device);
void add_index(Operators& operators);
void add_lanes(Operators& operators);
void add_reduce(Operators& operators, const PhysicalDevice& device);
void add_adamw(Operators& operators);
void add_pool(Operators& operators);
void add_quantize(Operators& operators, const PhysicalDevice& device);
void add_attention(Operators& operators, const PhysicalDevice& device);
void add_rope(Operators& operators);
void add_cross_entropy(Operators& operators, const PhysicalDevice& device);
void add_norm(Operators& operators, const PhysicalDevice& device);
void add_norm_bwd(Operators& operators, const PhysicalDevice& device);
void add_topk(Operators& operators, const PhysicalDevice& device);
void add_softmax(Operators& operators, const PhysicalDevice& device);

}  // namespace backplane::vulkan
