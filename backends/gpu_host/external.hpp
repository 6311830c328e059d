// SPDX-License-Identifier: Apache-2.0
// The driver calls for memory and semaphores that other devices, APIs and processes share.
#pragma once

#include <backplane/kit/external.hpp>

#include "gpu_host/stack.hpp"

namespace backplane::gpu_host {

// Shareable memory that is mapped for a device.
struct SharedMemory {
  // The calls that made the memory, which free() reverses.
  enum class Origin { kCreated, kImported, kForeign } origin = Origin::kCreated;
  std::byte* address = nullptr;
  uint64_t bytes = 0;   // the size of the whole memory
  uint64_t object = 0;  // the driver's object
};

// A stack that shares memory implements this class. All functions need a context that the calling thread has entered.
// A descriptor is the file descriptor of a handle, whose type is in PhysicalDevice::external_types.
class External {
 public:
  External() = default;
  External(const External&) = delete;
  External& operator=(const External&) = delete;
  virtual ~External() = default;

  // Allocates at least `bytes` bytes of the memory of device `ordinal`.
  virtual kit::Result<SharedMemory> allocate(int ordinal, uint64_t bytes) const = 0;
  // Returns a new descriptor of memory from allocate(). The caller closes the descriptor.
  virtual kit::Result<int> descriptor_of(const SharedMemory& memory) const = 0;
  // Maps memory of `bytes` bytes, the size of the whole memory. The caller keeps the descriptor. Returns
  // INVALID_ARGUMENT if the driver does not accept the descriptor or the size.
  virtual kit::Result<SharedMemory> import_memory(int ordinal, int fd, uint64_t bytes) const = 0;
  virtual kit::Status free(const SharedMemory& memory) const = 0;

  // Returns the driver's object of a semaphore. The caller keeps the descriptor. Returns INVALID_ARGUMENT if the
  // driver does not accept the descriptor.
  virtual kit::Result<Handle> import_semaphore(int fd) const = 0;
  virtual void destroy_semaphore(Handle semaphore) const = 0;
  // `value` exceeds the values of all earlier signals.
  virtual kit::Status signal(Handle semaphore, uint64_t value, Handle stream) const = 0;
  virtual kit::Status wait(Handle semaphore, uint64_t value, Handle stream) const = 0;
};

}  // namespace backplane::gpu_host
