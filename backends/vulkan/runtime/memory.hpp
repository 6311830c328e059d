// SPDX-License-Identifier: Apache-2.0
// Creates and imports buffers. Each buffer is a VkBuffer with its own memory and a device address.
// Core caches and divides buffers. PhysicalDevice::memory_type (physical_device.cpp) chooses the
// memory type.
#pragma once

#include "runtime/logical_device.hpp"

namespace backplane::vulkan {

inline constexpr uint32_t kNoHeap = VK_MAX_MEMORY_HEAPS;

struct Buffer {
  VkBuffer handle = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  uint64_t offset = 0;   // offset of the buffer's first byte in the VkBuffer
  uint64_t address = 0;  // device address of the first byte, aligned as requested
  std::byte* mapped = nullptr;
  uint32_t kind = BP_MEMORY_DEVICE;
  uint32_t heap = 0;       // index of the memory heap; kNoHeap if the memory is imported
  uint64_t allocated = 0;  // size of the VkBuffer in bytes

  bool on_host() const { return kind == BP_MEMORY_HOST || heap == kNoHeap; }
};

class Memory {
 public:
  static constexpr uint64_t kAlignment = 256;  // default alignment of buffers in bytes
  static constexpr uint64_t kMaxAlignment = uint64_t{1} << 21;

  explicit Memory(LogicalDevice& device) : device_(device) {}

  // The device must support the memory kind `kind`.
  kit::Status info(uint32_t kind, bp_memory_info& out) const;
  // The device must support the memory kind `desc.kind`. `desc.alignment` must be a power of two up
  // to kMaxAlignment.
  kit::Result<Buffer*> create(const bp_buffer_desc& desc);
  // Creates a SHARED buffer from host memory. The caller keeps ownership of the host memory.
  kit::Result<Buffer*> import(void* address, uint64_t bytes);
  void destroy(Buffer* buffer);

 private:
  // Creates a buffer with `room` extra bytes, so that the caller can move the buffer's first byte
  // to an aligned address.
  kit::Result<Buffer*> create(const bp_buffer_desc& desc, uint64_t room);
  // Creates the VkBuffer and gets its address. If `imported` is null, allocates memory for the
  // VkBuffer. Otherwise imports the pages at `imported`.
  kit::Status allocate(Buffer& buffer, uint32_t type, void* imported);
  kit::Status map(Buffer& buffer) const;
  kit::Status import_type(const void* pages, uint32_t& type) const;

  LogicalDevice& device_;
};

}  // namespace backplane::vulkan
