// SPDX-License-Identifier: Apache-2.0
// Memory of tensors. The context of a tensor's DataPtr is a bph_buffer, and the address is the
// buffer's address, which the host must not read.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include "errors.hpp"

namespace backplane_torch {

c10::DeviceAllocator& allocator();
// Returns the buffer of a storage, borrowed; null if the storage has no bytes. Raises for memory
// that the allocator did not allocate.
bph_buffer* buffer_of(const c10::Storage& storage);

}  // namespace backplane_torch
