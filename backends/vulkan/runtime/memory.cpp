// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory.hpp"

#include <unistd.h>

namespace backplane::vulkan {

namespace {
constexpr const char* kKindNames[BP_MEMORY_KINDS] = {"DEVICE", "HOST", "SHARED"};
kit::Status not_taken() {
  return kit::unsupported("import_memory: the driver does not accept this memory; copy instead");
}

}  // namespace

kit::Status Memory::info(uint32_t kind, bp_memory_info& out) const {
  const uint32_t heap = heap_of(kind);
  out.total_bytes = device_.physical().memory.memoryHeaps[heap].size;
  out.free_bytes = out.total_bytes - std::min(device_.used(heap).load(std::memory_order_relaxed), out.total_bytes);
  return {};
}

Memory::~Memory() {
  for (auto& of_kind : blocks_) {
    for (Blocks& blocks : of_kind) {
      for (const auto& block : blocks) destroy(block->whole);
    }
  }
}

kit::Result<Buffer*> Memory::create(const bp_buffer_desc& desc) {
  auto made = create_once(desc);
  if (made.status().code() == BP_OUT_OF_MEMORY && destroy_empty_blocks()) made = create_once(desc);
  return made;
}

kit::Result<Buffer*> Memory::create_once(const bp_buffer_desc& desc) {
  const bool fits = desc.bytes <= kMaxRoundedBytes || (desc.bytes <= kMaxSlotBytes && std::has_single_bit(desc.bytes));
  return fits && desc.alignment <= kAlignment ? create_slot(desc) : create_alone(desc, Purpose::kBuffer);
}

kit::Result<Buffer*> Memory::create_slot(const bp_buffer_desc& desc) {
  auto buffer = std::make_unique<Buffer>();
  buffer->kind = desc.kind;
  buffer->heap = heap_of(desc.kind);
  buffer->allocated = std::max(std::bit_ceil(desc.bytes), kAlignment);
  kit::Status status = count(*buffer, desc);
  if (status.ok()) {
    std::lock_guard lock(mutex_);
    Blocks& blocks = blocks_[desc.kind][std::countr_zero(buffer->allocated / kAlignment)];
    auto found = block_with_room(blocks, desc.kind, buffer->allocated);
    status = found.status();
    if (status.ok()) {
      Block& block = *found.value();
      const auto slot = static_cast<uint64_t>(std::countr_zero(block.free));
      block.free &= block.free - 1;
      buffer->block = &block;
      buffer->handle = block.whole->handle;
      buffer->memory = block.whole->memory;
      buffer->offset = block.whole->offset + slot * block.slot_bytes;
      buffer->address = block.whole->address + slot * block.slot_bytes;
      if (block.whole->mapped != nullptr) buffer->mapped = block.whole->mapped + slot * block.slot_bytes;
      return buffer.release();
    }
  }
  destroy(buffer.release());
  return status;
}

kit::Result<Block*> Memory::block_with_room(Blocks& blocks, uint32_t kind, uint64_t slot_bytes) {
  const auto found = std::ranges::find_if(blocks, [](const auto& each) { return each->free != 0; });
  if (found != blocks.end()) return found->get();
  const uint64_t slots = std::clamp<uint64_t>(kBlockBytes / slot_bytes, 1, 64);
  auto block = std::make_unique<Block>();
  blocks.reserve(blocks.size() + 1);
  auto whole = create_alone({sizeof(bp_buffer_desc), kind, slots * slot_bytes, kAlignment}, Purpose::kBlock);
  if (!whole.ok()) return whole.status();
  *block = {whole.value(), slot_bytes, ~uint64_t{0} >> (64 - slots), ~uint64_t{0} >> (64 - slots)};
  return blocks.emplace_back(std::move(block)).get();
}

void Memory::give_slot(const Buffer& buffer) {
  Block& block = *buffer.block;
  std::lock_guard lock(mutex_);
  block.free |= uint64_t{1} << (buffer.offset - block.whole->offset) / block.slot_bytes;
  if (block.free != block.all) return;
  Blocks& blocks = blocks_[buffer.kind][std::countr_zero(block.slot_bytes / kAlignment)];
  const auto is_empty = [](const auto& each) { return each->free == each->all; };
  if (std::ranges::count_if(blocks, is_empty) == 1) return;
  destroy(block.whole);
  std::erase_if(blocks, [&](const auto& each) { return each.get() == &block; });
}

bool Memory::destroy_empty_blocks() {
  bool any = false;
  std::lock_guard lock(mutex_);
  for (auto& of_kind : blocks_) {
    for (Blocks& blocks : of_kind) {
      std::erase_if(blocks, [&](const auto& block) {
        if (block->free != block->all) return false;
        destroy(block->whole);
        return any = true;
      });
    }
  }
  return any;
}

kit::Result<Buffer*> Memory::create_alone(const bp_buffer_desc& desc, Purpose purpose) {
  // If the requested alignment exceeds kAlignment, or the driver's address is not aligned as
  // requested, the VkBuffer gets extra bytes. The buffer then begins at the first aligned address.
  auto made = create_alone(desc, purpose, desc.alignment > kAlignment ? desc.alignment : 0);
  if (made.ok() && made.value()->address % desc.alignment != 0 && made.value()->allocated == desc.bytes) {
    destroy(made.value());
    made = create_alone(desc, purpose, desc.alignment);
  }
  if (!made.ok()) return made;
  Buffer& buffer = *made.value();
  buffer.offset = -buffer.address & (desc.alignment - 1);
  buffer.address += buffer.offset;
  if (kit::Status status = map(buffer); !status.ok()) {
    destroy(&buffer);
    return status;
  }
  return &buffer;
}

kit::Result<Buffer*> Memory::create_alone(const bp_buffer_desc& desc, Purpose purpose, uint64_t room) {
  const PhysicalDevice& physical = device_.physical();
  if (desc.bytes > physical.max_allocation || desc.bytes + room > physical.max_allocation) {
    return kit::out_of_memory("buffer_create: ", desc.bytes, " bytes of ", kKindNames[desc.kind],
                              " memory requested, one allocation of ", physical.properties.deviceName, " has at most ",
                              physical.max_allocation, "; divide the tensor");
  }
  auto buffer = std::make_unique<Buffer>();
  buffer->kind = desc.kind;
  buffer->heap = purpose == Purpose::kBlock ? kNoHeap : heap_of(desc.kind);
  buffer->allocated = desc.bytes + room;
  kit::Status status = purpose == Purpose::kBlock ? kit::Status() : count(*buffer, desc);
  const auto type = static_cast<uint32_t>(device_.memory_type(desc.kind));
  if (status.ok()) status = allocate(*buffer, type, {.exportable = purpose == Purpose::kExport});
  if (!status.ok()) {
    destroy(buffer.release());
    return status;
  }
  return buffer.release();
}

kit::Status Memory::count(const Buffer& buffer, const bp_buffer_desc& desc) {
  const uint64_t total = device_.physical().memory.memoryHeaps[buffer.heap].size;
  const uint64_t before = device_.used(buffer.heap).fetch_add(buffer.allocated, std::memory_order_relaxed);
  if (before <= total && buffer.allocated <= total - before) return {};
  return kit::out_of_memory("buffer_create: ", desc.bytes, " bytes of ", kKindNames[desc.kind], " memory requested, ",
                            before, " of ", total, " are in use; free buffers, or trim the allocator, and try again");
}

uint32_t Memory::heap_of(uint32_t kind) const {
  return device_.physical().memory.memoryTypes[device_.memory_type(kind)].heapIndex;
}

kit::Status Memory::allocate(Buffer& buffer, uint32_t type, const Backing& backing) {
  const DeviceApi& api = device_.api();
  auto external = chained<VkExternalMemoryBufferCreateInfo>(VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO);
  external.handleTypes = backing.pages == nullptr ? VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT
                                                  : VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  VkBufferCreateInfo info = device_.buffer_info(buffer.allocated);
  if (backing.exportable || backing.is_imported()) info.pNext = &external;
  kit::Status status =
      device_.check(api.vkCreateBuffer(device_.handle(), &info, nullptr, &buffer.handle), "vkCreateBuffer");
  if (!status.ok()) return status;
  VkMemoryRequirements requirements{};
  api.vkGetBufferMemoryRequirements(device_.handle(), buffer.handle, &requirements);
  if ((requirements.memoryTypeBits >> type & 1u) == 0 || (backing.is_imported() && requirements.size > backing.bytes)) {
    return kit::unsupported("vulkan: the driver supports no buffers in ",
                            backing.is_imported() ? "imported" : kKindNames[buffer.kind], " memory");
  }
  auto pages = chained<VkImportMemoryHostPointerInfoEXT>(VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);
  pages.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  pages.pHostPointer = backing.pages;
  auto descriptor = chained<VkImportMemoryFdInfoKHR>(VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR);
  descriptor.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  descriptor.fd = backing.fd;
  auto exports = chained<VkExportMemoryAllocateInfo>(VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO);
  exports.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  void* next = nullptr;
  if (backing.pages != nullptr) next = &pages;
  if (backing.fd >= 0) next = &descriptor;
  if (backing.exportable) next = &exports;
  auto flags = chained<VkMemoryAllocateFlagsInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO, next);
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  auto allocation = chained<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &flags);
  allocation.allocationSize = backing.is_imported() ? backing.bytes : requirements.size;
  if (backing.exportable) buffer.exported = requirements.size;
  allocation.memoryTypeIndex = type;
  const uint32_t max_allocations = device_.physical().properties.limits.maxMemoryAllocationCount;
  if (device_.allocations().fetch_add(1, std::memory_order_relaxed) >= max_allocations) {
    status = kit::out_of_memory("vulkan: ", max_allocations, " allocations of memory are in use, and ",
                                device_.physical().properties.deviceName,
                                " has no more; free buffers, or trim the allocator, and try again");
  } else {
    status =
        device_.check(api.vkAllocateMemory(device_.handle(), &allocation, nullptr, &buffer.memory), "vkAllocateMemory");
  }
  if (buffer.memory == VK_NULL_HANDLE) device_.allocations().fetch_sub(1, std::memory_order_relaxed);
  if (status.ok()) {
    status =
        device_.check(api.vkBindBufferMemory(device_.handle(), buffer.handle, buffer.memory, 0), "vkBindBufferMemory");
  }
  if (!status.ok()) return status;
  auto address = chained<VkBufferDeviceAddressInfo>(VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO);
  address.buffer = buffer.handle;
  buffer.address = api.vkGetBufferDeviceAddress(device_.handle(), &address);
  return {};
}

kit::Status Memory::map(Buffer& buffer) const {
  if (buffer.kind == BP_MEMORY_DEVICE) return {};
  void* mapped = nullptr;
  kit::Status status = device_.check(
      device_.api().vkMapMemory(device_.handle(), buffer.memory, 0, VK_WHOLE_SIZE, 0, &mapped), "vkMapMemory");
  if (status.ok()) buffer.mapped = static_cast<std::byte*>(mapped) + buffer.offset;
  return status;
}

kit::Result<Buffer*> Memory::import(void* address, uint64_t bytes) {
  // Imports all pages that contain a part of the range. If the driver's granularity exceeds a page,
  // the address and the size must be multiples of the granularity.
  const uint64_t alignment = device_.physical().import_alignment;
  const auto first = reinterpret_cast<uint64_t>(address);
  const uint64_t begin = first & ~(alignment - 1), end = (first + bytes + alignment - 1) & ~(alignment - 1);
  if (alignment > static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) && (begin != first || end != first + bytes)) {
    return kit::unsupported("import_memory: the driver accepts only multiples of ", alignment,
                            " bytes; align the memory, or copy instead");
  }
  if (end - begin > device_.physical().max_allocation) {
    return kit::unsupported("import_memory: ", bytes, " bytes are more than the ", device_.physical().max_allocation,
                            " that the driver accepts at once; divide the tensor");
  }
  auto* const pages = reinterpret_cast<void*>(begin);
  uint32_t type = 0;
  if (kit::Status status = import_type(pages, type); !status.ok()) return status;
  auto buffer = std::make_unique<Buffer>();
  buffer->kind = BP_MEMORY_SHARED;
  buffer->allocated = end - begin;
  buffer->heap = kNoHeap;
  if (kit::Status status = allocate(*buffer, type, {.pages = pages, .bytes = buffer->allocated}); !status.ok()) {
    destroy(buffer.release());
    // Some drivers report a usable memory type and then reject the import.
    return status.vendor_code() == VK_ERROR_INVALID_EXTERNAL_HANDLE ? not_taken() : status;
  }
  buffer->offset = first - begin;
  buffer->address += buffer->offset;
  buffer->mapped = static_cast<std::byte*>(address);
  return buffer.release();
}

kit::Result<Buffer*> Memory::create_external(const bp_buffer_desc& desc) {
  if (desc.kind != BP_MEMORY_DEVICE || desc.alignment > kAlignment) {
    return kit::unsupported("buffer_create_external: memory of the type ", kExternalType,
                            " has the kind DEVICE, and alignments up to ", kAlignment);
  }
  auto made = create_alone(desc, Purpose::kExport, 0);
  if (!made.ok() || made.value()->address % desc.alignment == 0) return made;
  destroy(made.value());
  return kit::unsupported("buffer_create_external: the driver aligns such memory to less than ", desc.alignment);
}

kit::Result<bp_external_handle> Memory::exported(const Buffer& buffer) const {
  if (buffer.exported == 0) {
    return kit::unsupported("buffer_export: the buffer was not created for export; use buffer_create_external");
  }
  auto info = chained<VkMemoryGetFdInfoKHR>(VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR);
  info.memory = buffer.memory;
  info.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  int fd = -1;
  kit::Status status = device_.check(device_.api().vkGetMemoryFdKHR(device_.handle(), &info, &fd), "vkGetMemoryFdKHR");
  if (!status.ok()) return status;
  bp_external_handle out = opaque_handle(device_, fd);
  out.object_bytes = buffer.exported;
  return out;
}

kit::Result<Buffer*> Memory::import_external(const bp_external_handle& handle) {
  constexpr const char* kSlot = "buffer_import";
  const PhysicalDevice& physical = device_.physical();
  // Vulkan requires that memory is imported with the memory type with which it was allocated. create_external()
  // allocates memory of this type.
  const auto type = static_cast<uint32_t>(device_.memory_type(BP_MEMORY_DEVICE));
  const uint64_t most =
      std::min(physical.max_allocation, physical.memory.memoryHeaps[physical.memory.memoryTypes[type].heapIndex].size);
  if (handle.object_bytes > most) {
    return kit::invalid_argument(kSlot, ": memory of ", handle.object_bytes, " bytes exceeds the largest allocation, ",
                                 most, " bytes; pass object_bytes as exported");
  }
  auto fd = ImportedDescriptor::of(kSlot, handle.fd);
  if (!fd.ok()) return fd.status();
  auto buffer = std::make_unique<Buffer>();
  buffer->heap = kNoHeap;
  buffer->allocated = handle.offset + handle.bytes;
  kit::Status status = allocate(*buffer, type, {.fd = fd.value().get(), .bytes = handle.object_bytes});
  // The driver owns the descriptor once the memory exists, even if a later call in allocate() failed.
  const bool is_imported = buffer->memory != VK_NULL_HANDLE;
  if (is_imported || status.code() != BP_UNSUPPORTED) {
    const kit::Status ended = fd.value().end(kSlot, is_imported ? kit::Status() : status);
    if (!ended.ok()) status = ended;
  }
  if (!status.ok()) {
    destroy(buffer.release());
    return status;
  }
  buffer->offset = handle.offset;
  buffer->address += handle.offset;
  return buffer.release();
}

kit::Status Memory::import_type(const void* pages, uint32_t& type) const {
  auto properties = chained<VkMemoryHostPointerPropertiesEXT>(VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT);
  const VkResult result = device_.api().vkGetMemoryHostPointerPropertiesEXT(
      device_.handle(), VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT, pages, &properties);
  if (result != VK_SUCCESS && result != VK_ERROR_INVALID_EXTERNAL_HANDLE)
    return device_.check(result, "vkGetMemoryHostPointerPropertiesEXT");
  const VkPhysicalDeviceMemoryProperties& memory = device_.physical().memory;
  for (type = 0; result == VK_SUCCESS && type < memory.memoryTypeCount; ++type) {
    const VkMemoryPropertyFlags flags = memory.memoryTypes[type].propertyFlags;
    const bool usable = (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0 && (flags & kUnusableMemory) == 0;
    if (usable && (properties.memoryTypeBits >> type & 1u) != 0) return {};
  }
  return not_taken();
}

void Memory::destroy(Buffer* buffer) {
  if (buffer->block != nullptr) {
    give_slot(*buffer);
  } else {
    // After a device loss, submitted work may access the buffer until the device is idle.
    if (device_.lost()) device_.wait_idle();
    const DeviceApi& api = device_.api();
    api.vkDestroyBuffer(device_.handle(), buffer->handle, nullptr);
    api.vkFreeMemory(device_.handle(), buffer->memory, nullptr);
    if (buffer->memory != VK_NULL_HANDLE) device_.allocations().fetch_sub(1, std::memory_order_relaxed);
  }
  if (buffer->heap != kNoHeap) device_.used(buffer->heap).fetch_sub(buffer->allocated, std::memory_order_relaxed);
  delete buffer;
}

}  // namespace backplane::vulkan
