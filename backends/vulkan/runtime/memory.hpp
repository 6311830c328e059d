// SPDX-License-Identifier: Apache-2.0
// Creates and imports buffers. A large buffer is a VkBuffer with its own memory and a device address. A small buffer is
// a slot of a block, and a block is a VkBuffer that is divided into slots. Most calls that create a small buffer
// therefore need no driver call. PhysicalDevice::memory_type (physical_device.cpp) chooses the memory type.
#pragma once

#include <bit>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/external.hpp"

namespace backplane::vulkan {

inline constexpr uint32_t kNoHeap = VK_MAX_MEMORY_HEAPS;

struct Block;

struct Buffer {
  VkBuffer handle = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  uint64_t offset = 0;   // offset of the buffer's first byte in the VkBuffer
  uint64_t address = 0;  // device address of the first byte, aligned as requested
  std::byte* mapped = nullptr;
  uint32_t kind = BP_MEMORY_DEVICE;
  uint32_t heap = 0;       // index of the memory heap; kNoHeap if the memory is imported or is a block
  uint64_t allocated = 0;  // size of the VkBuffer, or of the slot, in bytes
  Block* block = nullptr;  // the block that contains the buffer; null if the buffer has its own memory
  uint64_t exported = 0;   // size of the memory in bytes if it can be exported, otherwise 0

  // Returns whether the memory is host memory. Imported host memory has the kind SHARED and belongs to no heap of the
  // device.
  bool on_host() const { return kind == BP_MEMORY_HOST || (kind == BP_MEMORY_SHARED && heap == kNoHeap); }
};

// A buffer that is divided into slots of equal size.
struct Block {
  Buffer* whole = nullptr;
  uint64_t slot_bytes = 0;
  uint64_t free = 0;  // bit i is set if slot i is free
  uint64_t all = 0;   // the value of `free` if all slots are free
};

class Memory {
 public:
  static constexpr uint64_t kAlignment = 256;  // default alignment of buffers in bytes
  static constexpr uint64_t kMaxAlignment = uint64_t{1} << 21;
  // The size of a slot is a power of two. Buffers of up to kMaxRoundedBytes are rounded up to such a
  // size. Larger buffers are slots only if their size is already a power of two.
  static constexpr uint64_t kMaxRoundedBytes = uint64_t{1} << 20, kMaxSlotBytes = uint64_t{8} << 20;
  // Size in bytes of a block with slots of 64 KiB to 4 MiB. A block with smaller slots has 64 slots. A block with
  // larger slots has one slot.
  static constexpr uint64_t kBlockBytes = uint64_t{4} << 20;

  explicit Memory(LogicalDevice& device) : device_(device) {}
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // The device must support the memory kind `kind`.
  kit::Status info(uint32_t kind, bp_memory_info& out) const;
  // The device must support the memory kind `desc.kind`. `desc.alignment` must be a power of two up
  // to kMaxAlignment.
  kit::Result<Buffer*> create(const bp_buffer_desc& desc);
  // Creates a SHARED buffer from host memory. The caller keeps ownership of the host memory.
  kit::Result<Buffer*> import(void* address, uint64_t bytes);
  // create_external(), exported() and import_external() need the device's external operations
  // (PhysicalDevice::external). External memory has the kind DEVICE.
  kit::Result<Buffer*> create_external(const bp_buffer_desc& desc);
  kit::Result<bp_external_handle> exported(const Buffer& buffer) const;
  kit::Result<Buffer*> import_external(const bp_external_handle& handle);
  void destroy(Buffer* buffer);
  // Destroys the blocks that contain no buffers. Returns whether a block was destroyed.
  bool destroy_empty_blocks();

 private:
  using Blocks = std::vector<std::unique_ptr<Block>>;
  static constexpr std::size_t kSlotSizes = std::bit_width(kMaxSlotBytes / kAlignment);

  kit::Result<Buffer*> create_once(const bp_buffer_desc& desc);
  kit::Result<Buffer*> create_slot(const bp_buffer_desc& desc);
  kit::Result<Block*> block_with_room(Blocks& blocks, uint32_t kind, uint64_t slot_bytes);
  void give_slot(const Buffer& buffer);
  // Creates a buffer with its own memory. Adds the size to the used bytes of the heap, except with kBlock, because
  // create_slot() adds the size of each used slot.
  enum class Purpose { kBuffer, kBlock, kExport };
  kit::Result<Buffer*> create_alone(const bp_buffer_desc& desc, Purpose purpose);
  // Creates a buffer with `room` extra bytes, so that the caller can move the buffer's first byte
  // to an aligned address.
  kit::Result<Buffer*> create_alone(const bp_buffer_desc& desc, Purpose purpose, uint64_t room);
  // Adds the size of a buffer to the used bytes of its heap. Returns OUT_OF_MEMORY if the used bytes then exceed the
  // heap. destroy() subtracts the size, even if count() failed.
  kit::Status count(const Buffer& buffer, const bp_buffer_desc& desc);
  uint32_t heap_of(uint32_t kind) const;
  // The origin of a buffer's memory: an allocation, or an import of pages or of a descriptor.
  struct Backing {
    bool exportable = false;
    void* pages = nullptr;
    int fd = -1;
    uint64_t bytes = 0;  // the size of imported memory in bytes

    bool is_imported() const { return pages != nullptr || fd >= 0; }
  };
  // Creates the VkBuffer, allocates or imports its memory, and sets its device address.
  kit::Status allocate(Buffer& buffer, uint32_t type, const Backing& backing);
  kit::Status map(Buffer& buffer) const;
  kit::Status import_type(const void* pages, uint32_t& type) const;

  LogicalDevice& device_;
  std::mutex mutex_;  // guards blocks_
  // blocks_[kind][i] lists the blocks of the memory kind `kind` with slots of 256 << i bytes. Each list keeps at most
  // one block without buffers, so that repeated creation and destruction of a buffer makes no driver calls.
  Blocks blocks_[BP_MEMORY_KINDS][kSlotSizes];
};

}  // namespace backplane::vulkan
