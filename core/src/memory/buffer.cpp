// SPDX-License-Identifier: Apache-2.0
// Creates and imports buffers, and manages their handles.
#include "memory/buffer.hpp"

#include <atomic>
#include <bit>

#include "base/structs.hpp"
#include "loading/device.hpp"
#include "loading/plugin_call.hpp"
#include "memory/allocator.hpp"
#include "memory/pool.hpp"
#include "streams/stream.hpp"

namespace backplane::core {

namespace {

Block& block_of(Buffer& buffer) noexcept { return static_cast<Block&>(buffer); }

// Creates a handle for a block. A cached block keeps its slot in the handle table, so its new
// handle needs neither a lock nor memory.
Buffer& with_handle(Device& device, Block& block) {
  HandleTable& handles = HandleTable::instance();
  // Atomic, because another thread may look up an address in this memory concurrently.
  const std::atomic_ref handle(block.public_handle);
  if (block.public_handle != 0) [[likely]] {
    handle.store(handles.renew(block.public_handle), std::memory_order_relaxed);
    return block;
  }
  try {
    handle.store(handles.insert(Buffer::kHandleType, static_cast<Buffer*>(&block)), std::memory_order_relaxed);
  } catch (...) {
    device.allocator.release_block(block);
    throw;
  }
  return block;
}

inline void require_same_device(const char* function, const Device& device, const Stream* stream) {
  if (stream == nullptr || stream->device.get() == &device) [[likely]]
    return;
  throw Error(BP_INVALID_ARGUMENT, "{}: the stream is of {}, the buffer for {}{}; use one of the same device", function,
              stream->device->name, device.name, stream->device->name == device.name ? " as opened another time" : "");
}

Block& imported_block(Device& device, const bph_import_desc& desc) {
  constexpr const char* function = "bph_buffer_import";
  if (desc.address == 0 && desc.bytes != 0) {
    throw Error(BP_INVALID_ARGUMENT, "{}: the address is null, and {} bytes are to be there", function, desc.bytes);
  }
  if (UINT64_MAX - desc.address < desc.bytes) {
    throw Error(BP_INVALID_ARGUMENT, "{}: {} bytes at {:#x} go past the end of memory", function, desc.bytes,
                desc.address);
  }
  if (desc.bytes != 0) return device.allocator.import_block(desc);
  Block& block = device.allocator.empty_block();
  block.source = Block::Source::imported;
  block.kind = desc.type == BP_IMPORT_HOST ? BP_MEMORY_HOST : BP_MEMORY_DEVICE;
  return block;
}

Block& wrapped_block(Device& device, const bp_native_handle& given) {
  constexpr const char* function = "bph_buffer_import";
  const bp_native_handle native = read_input(&given, BP_NATIVE_HANDLE_MIN_SIZE, function, "bp_native_handle");
  if ((native.flags & ~BP_NATIVE_ADDRESS) != 0) {
    throw Error(BP_UNSUPPORTED, "{}: native.flags {:#x} has unknown bits; use 0 or BP_NATIVE_ADDRESS", function,
                native.flags);
  }
  if (native.bytes == 0) throw Error(BP_INVALID_ARGUMENT, "{}: native.bytes is 0; state at least 1", function);
  return device.allocator.wrap_block(native);
}

}  // namespace

Buffer& Buffer::create(Device& device, const bph_buffer_desc& desc, Stream* stream) {
  if (((desc.flags & ~BPH_BUFFER_RAW) | desc.reserved) != 0) [[unlikely]] {
    throw Error(BP_UNSUPPORTED,
                "bph_buffer_create: flags {:#x} or reserved {:#x} has unknown bits; use BPH_BUFFER_* and 0", desc.flags,
                desc.reserved);
  }
  if (desc.alignment != 0 && (!std::has_single_bit(desc.alignment) || desc.alignment > kMaxAlignment)) [[unlikely]] {
    throw Error(BP_INVALID_ARGUMENT,
                "bph_buffer_create: alignment {} is not a power of two up to {}; 0 is the device's own", desc.alignment,
                kMaxAlignment);
  }
  require_same_device("bph_buffer_create", device, stream);
  Allocator& allocator = device.allocator;
  if (desc.bytes == 0) [[unlikely]] {
    allocator.require_kind(desc.kind);
    Block& block = allocator.empty_block();
    block.kind = desc.kind;
    return with_handle(device, block);
  }
  if ((desc.flags & BPH_BUFFER_RAW) != 0) [[unlikely]] {
    return with_handle(device, allocator.raw_block(desc.kind, desc.bytes, desc.alignment, stream));
  }
  return with_handle(device, allocator.allocate_block(desc.kind, desc.bytes, desc.alignment, stream));
}

Buffer& Buffer::import(Device& device, const bph_import_desc& desc, Stream* stream) {
  constexpr const char* function = "bph_buffer_import";
  if (desc.type > BP_IMPORT_DEVICE || ((desc.flags & ~BPH_IMPORT_NATIVE) | desc.reserved) != 0) {
    throw Error(BP_UNSUPPORTED,
                "{}: type {}, flags {:#x} or reserved {:#x} is unknown; use BP_IMPORT_HOST or BP_IMPORT_DEVICE, "
                "BPH_IMPORT_NATIVE, and 0",
                function, desc.type, desc.flags, desc.reserved);
  }
  const bool wraps = (desc.flags & BPH_IMPORT_NATIVE) != 0;
  if (wraps != (desc.native != nullptr) || (wraps && (desc.type | desc.address | desc.bytes) != 0)) {
    throw Error(BP_INVALID_ARGUMENT,
                "{}: flags {:#x}, type {}, address {:#x} and {} bytes with{} a native handle; pass the handle with "
                "BPH_IMPORT_NATIVE alone, and leave the other fields 0",
                function, desc.flags, desc.type, desc.address, desc.bytes, desc.native == nullptr ? "out" : "");
  }
  require_same_device(function, device, stream);
  Block& block = wraps ? wrapped_block(device, *desc.native) : imported_block(device, desc);
  Buffer& buffer = with_handle(device, block);
  block.any_stream = stream == nullptr;
  if (stream != nullptr) block.user = stream->timeline;
  try {
    (void)device.allocator.address_of(block);
  } catch (...) {
    end(buffer, buffer.public_handle);
    throw;
  }
  block.release = desc.release;
  block.context = desc.context;
  return buffer;
}

void Buffer::end(Buffer& buffer, uint64_t handle) noexcept {
  buffer.device->allocator.release_handle(block_of(buffer), handle);
}

void Buffer::record(Stream& stream) {
  if (stream.device.get() != device) {
    throw Error(BP_INVALID_ARGUMENT,
                "bph_buffer_record: the buffer is of {}, the stream of {}{}; use one of the same device", device->name,
                stream.device->name, stream.device->name == device->name ? " as opened another time" : "");
  }
  device->allocator.record_use(block_of(*this), stream);
}

void Buffer::record_foreign(Stream& stream) { device->allocator.record_foreign(block_of(*this), stream); }

void* Buffer::map() {
  if (kind == BP_MEMORY_DEVICE) {
    throw Error(
        BP_UNSUPPORTED,
        "{}: DEVICE memory of {} bytes has no host address; copy it out, or create the buffer as HOST or SHARED",
        device->name, bytes);
  }
  if (plugin_buffer == nullptr) return nullptr;
  bp_error error = fresh_error();
  void* address = nullptr;
  const bp_status status = device->api->buffer_map(device->handle, plugin_buffer, &address, &error);
  created(*device, "buffer_map", status, error, address);
  device->allocator.note_mapping(block_of(*this), address);
  return static_cast<char*>(address) + plugin_offset;
}

Buffer::Address Buffer::address() { return device->allocator.address_of(block_of(*this)); }
void Buffer::hold() noexcept { device->allocator.hold(block_of(*this)); }
void Buffer::end_hold() noexcept { device->allocator.end_hold(block_of(*this)); }

}  // namespace backplane::core
