// SPDX-License-Identifier: Apache-2.0
// Buffers. Each is a VkBuffer with its own memory and a device address. Core caches and divides
// buffers. PhysicalDevice::memory_type (physical_device.cpp) chooses the memory type.
#pragma once

#include "runtime/logical_device.hpp"

namespace backplane::vulkan {

inline constexpr uint32_t kNoHeap = VK_MAX_MEMORY_HEAPS;

struct Buffer {
  VkBuffer handle = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  uint64_t offset = 0;   // offset of byte 0 in the VkBuffer
  uint64_t address = 0;  // device address of byte 0; a multiple of the requested alignment
  std::byte* mapped = nullptr;
  uint32_t kind = BP_MEMORY_DEVICE;
  uint32_t heap = 0;       // kNoHeap if the memory is imported
  uint64_t allocated = 0;  // bytes charged to the heap

  bool on_host() const { return kind == BP_MEMORY_HOST || heap == kNoHeap; }
};

class Memory {
 public:
  static constexpr uint64_t kAlignment = 256;  // of every buffer; most drivers provide at least this
  static constexpr uint64_t kMaxAlignment = uint64_t{1} << 21;

  explicit Memory(LogicalDevice& device) : device_(device) {}

  // `kind` must be one that the device has; the same holds for buffers.
  kit::Status info(uint32_t kind, bp_memory_info& out) const;
  // `alignment` is a power of two up to kMaxAlignment.
  kit::Result<Buffer*> create(const bp_buffer_desc& desc);
  // Creates a SHARED buffer over host memory, which the host still owns.
  kit::Result<Buffer*> import(void* address, uint64_t bytes);
  void destroy(Buffer* buffer);

 private:
  // Creates a buffer with `room` extra bytes. The caller moves its start up to an aligned address.
  kit::Result<Buffer*> create(const bp_buffer_desc& desc, uint64_t room);
  // Creates the VkBuffer with new memory, or with the pages at `imported` unless it is null, and
  // gets its address.
  kit::Status allocate(Buffer& buffer, uint32_t type, void* imported);
  kit::Status map(Buffer& buffer) const;
  kit::Status import_type(const void* pages, uint32_t& type) const;

  LogicalDevice& device_;
};

}  // namespace backplane::vulkan
