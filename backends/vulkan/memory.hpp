// SPDX-License-Identifier: Apache-2.0
// Buffers: each a VkBuffer over memory of its own, with a device address. Core caches and divides them.
#pragma once

#include <backplane/kit/plan.hpp>

#include "logical_device.hpp"

namespace backplane::vulkan {

struct Buffer {
  VkBuffer handle = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  uint64_t bytes = 0;
  uint64_t offset = 0;   // in the VkBuffer, of byte 0
  uint64_t address = 0;  // for kernels, of byte 0; a multiple of the alignment that was asked for
  std::byte* mapped = nullptr;
  uint32_t kind = BP_MEMORY_DEVICE;
  uint32_t heap = 0;
  uint64_t allocated = 0;  // counted against the heap

  // As the kit's binding of operands sees it.
  kit::Span span() const { return {reinterpret_cast<std::byte*>(address), bytes}; }
};

class Memory {
 public:
  static constexpr uint64_t kAlignment = 256;  // what every driver gives memory of its own
  static constexpr uint64_t kMaxAlignment = uint64_t{1} << 21;

  explicit Memory(LogicalDevice& device) : device_(device) {}

  kit::Status info(uint32_t kind, bp_memory_info& out) const;
  kit::Result<Buffer*> create(const bp_buffer_desc& desc);
  void destroy(Buffer* buffer);

 private:
  kit::Status allocate(Buffer& buffer, uint32_t type, uint64_t alignment);

  LogicalDevice& device_;
};

}  // namespace backplane::vulkan
