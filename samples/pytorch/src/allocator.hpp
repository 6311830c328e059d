// SPDX-License-Identifier: Apache-2.0
// Memory of tensors. The context of a tensor's DataPtr contains a bph_buffer, and the address is the
// buffer's address, which the host must not read unless `host_address` returns it.
#pragma once

#include <ATen/core/TensorBase.h>
#include <c10/core/CachingDeviceAllocator.h>

#include "errors.hpp"

namespace backplane_torch {

c10::DeviceAllocator& allocator();
// Allocates memory in the order of the calling thread's current stream of a device.
c10::DataPtr allocate_on(c10::DeviceIndex index, size_t bytes);
// Returns a contiguous tensor without the cost of a dispatched call. The contents are undefined. Raises
// for a negative extent, and for a number of bytes that size_t cannot represent.
at::Tensor dense_tensor(at::IntArrayRef shape, at::ScalarType type, c10::Device device);
// A place in a buffer. The struct owns no reference to the buffer.
struct Memory {
  bph_buffer* buffer = nullptr;  // null if the memory has no bytes
  uint64_t offset = 0;
};
// Finds memory of the allocator without a search, and other memory by its address. Raises for an
// address that is in no buffer.
Memory memory_of(const c10::DataPtr& data);
// Finds the memory of the tensor's first element.
Memory memory_of(const at::TensorBase& tensor);
// Returns the address of the tensor's first element if the host may read it after a wait for the
// tensor's work. Otherwise returns null.
const void* host_address(const at::TensorBase& tensor);

}  // namespace backplane_torch
