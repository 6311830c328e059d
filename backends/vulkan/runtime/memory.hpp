// SPDX-License-Identifier: Apache-2.0
// Creates and imports buffers. Each buffer is a VkBuffer with its own memory and a device address.
// Core caches and divides buffers. PhysicalDevice::memory_type (physical_device.cpp) chooses the
// memory type.
#pragma once

#include "runtime/external.hpp"

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
  uint64_t exported = 0;   // size of the memory in bytes if it can be exported, otherwise 0

  // Imported memory of the host has the kind SHARED.
  bool on_host() const { return kind == BP_MEMORY_HOST || (kind == BP_MEMORY_SHARED && heap == kNoHeap); }
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
  // The functions that follow need the device's external operations (PhysicalDevice::external). External memory has the
  // kind DEVICE.
  kit::Result<Buffer*> create_external(const bp_buffer_desc& desc);
  kit::Result<bp_external_handle> exported(const Buffer& buffer) const;
  kit::Result<Buffer*> import_external(const bp_external_handle& handle);
  void destroy(Buffer* buffer);

 private:
  // Creates a buffer with `room` extra bytes, so that the caller can move the buffer's first byte
  // to an aligned address.
  kit::Result<Buffer*> create(const bp_buffer_desc& desc, uint64_t room, bool exportable);
  // The origin of a buffer's memory: an allocation, or an import of pages or of a descriptor.
  struct Backing {
    bool exportable = false;
    void* pages = nullptr;
    int fd = -1;
    uint64_t bytes = 0;  // the size of imported memory

    bool is_imported() const { return pages != nullptr || fd >= 0; }
  };
  // Creates the VkBuffer with its memory, and gets its address.
  kit::Status allocate(Buffer& buffer, uint32_t type, const Backing& backing);
  kit::Status map(Buffer& buffer) const;
  kit::Status import_type(const void* pages, uint32_t& type) const;

  LogicalDevice& device_;
};

}  // namespace backplane::vulkan
