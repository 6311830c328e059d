// SPDX-License-Identifier: Apache-2.0
// Pinned memory consists of HOST buffers of the current device. Every device can copy from and to this memory.
#pragma once

#include <ATen/core/CachingHostAllocator.h>

namespace backplane_torch {

at::HostAllocator& pinned_allocator();
bool is_pinned(const void* address);

}  // namespace backplane_torch
