// SPDX-License-Identifier: Apache-2.0
// How the sums of products are made: what a device can, and what a setting asks for.
#pragma once

#include "runtime/physical_device.hpp"

namespace backplane::vulkan {

// The numbers are shaders/matmul.comp's, which has 3 for few rows.
enum class Way : uint32_t { kDirect = 0, kShared = 1, kSubgroup = 2, kCooperative = 4, kDot = 5 };

// Whether a workgroup of BACKPLANE_LANE_GROUP threads is subgroups that are full, or can be asked to be, whose lanes hand each
// other values.
bool takes_lanes(const PhysicalDevice& device);

// The way for `device`: what BACKPLANE_VULKAN_MATMUL names, else the fastest. UNSUPPORTED: it names none, or one that the
// device lacks.
kit::Result<Way> way_of(const PhysicalDevice& device);

// The next best for `dtype` where `way` has nothing for it, else `way`.
Way way_of_dtype(Way way, uint32_t dtype, const PhysicalDevice& device);

}  // namespace backplane::vulkan
