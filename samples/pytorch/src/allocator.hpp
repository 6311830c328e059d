// SPDX-License-Identifier: Apache-2.0
// Memory of tensors. The context of a tensor's DataPtr owns a bph_buffer, and its address is the address of the
// buffer. The host must not read this address, unless host_address() returns it.
#pragma once

#include <ATen/core/TensorBase.h>
#include <c10/core/CachingDeviceAllocator.h>

#include "errors.hpp"

namespace backplane_torch {

c10::DeviceAllocator& allocator();
// Allocates memory on a device, in the order of the calling thread's current stream of this device.
c10::DataPtr allocate_on(c10::DeviceIndex index, size_t bytes);
// Returns a contiguous tensor without the cost of a dispatched call. Its contents are undefined. Raises an
// error for a negative extent, and for a number of bytes that size_t cannot represent.
at::Tensor dense_tensor(at::IntArrayRef shape, at::ScalarType type, c10::Device device);
// A place in a buffer. The struct does not own a reference to the buffer.
struct Memory {
  bph_buffer* buffer = nullptr;  // null if the memory has no bytes
  uint64_t offset = 0;
};
// Returns the memory of a DataPtr. If this allocator made the DataPtr, its context contains the buffer.
// Otherwise searches for the buffer by the address, and raises an error if no buffer contains the address.
Memory memory_of(const c10::DataPtr& data);
// Returns the memory of the tensor's first element.
Memory memory_of(const at::TensorBase& tensor);
// Returns the address of the tensor's first element, which the host may read after it has waited for the
// tensor's work. Returns null if the host cannot read the device's memory.
const void* host_address(const at::TensorBase& tensor);

}  // namespace backplane_torch
