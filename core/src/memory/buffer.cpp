// SPDX-License-Identifier: Apache-2.0
// Creates and imports buffers, and manages their handles.
#include "memory/buffer.hpp"

#include <atomic>
#include <bit>

#include "base/structs.hpp"
#include "loading/external.hpp"
#include "loading/peer.hpp"
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
  // The access is atomic, because a thread that looks up an address in this memory may read the handle concurrently.
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

// Makes a buffer from a block whose memory this library did not allocate. Calls `release(context)` when the memory is
// no longer used.
Buffer& over(Device& device, Block& block, Stream* stream, void (*release)(void*) = nullptr, void* context = nullptr) {
  Buffer& buffer = with_handle(device, block);
  block.any_stream = stream == nullptr;
  if (stream != nullptr) block.user = stream->timeline;
  try {
    (void)device.allocator.address_of(block);
  } catch (...) {
    Buffer::end(buffer, buffer.public_handle);
    throw;
  }
  block.release = release;
  block.context = context;
  return buffer;
}

// Throws unless the buffer is a whole buffer of the plugin.
void require_own_memory(const char* function, const Block& block) {
  if (block.plugin_buffer == nullptr) {
    throw Error(BP_INVALID_ARGUMENT, "{}: the buffer has 0 bytes and no memory; pass a buffer with memory", function);
  }
  if (block.source == Block::Source::raw || block.source == Block::Source::imported) return;
  throw Error(
      BP_INVALID_ARGUMENT,
      "{}: the memory of this buffer of {} bytes comes from a cache and belongs to other buffers too; create the "
      "buffer with BPH_BUFFER_RAW or bph_buffer_create_external",
      function, block.bytes);
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
  if (desc.type > BP_IMPORT_DEVICE ||
      ((desc.flags & ~(BPH_IMPORT_NATIVE | BPH_IMPORT_READ_ONLY)) | desc.reserved) != 0) {
    throw Error(BP_UNSUPPORTED,
                "{}: type {}, flags {:#x} or reserved {:#x} is unknown; use BP_IMPORT_HOST or BP_IMPORT_DEVICE, "
                "BPH_IMPORT_NATIVE, BPH_IMPORT_READ_ONLY, and 0",
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
  block.read_only = (desc.flags & BPH_IMPORT_READ_ONLY) != 0;
  return over(device, block, stream, desc.release, desc.context);
}

Buffer& Buffer::create_external(Device& device, const bph_buffer_desc& desc, const char* type, Stream* stream) {
  constexpr const char* function = "bph_buffer_create_external";
  if ((desc.flags | desc.reserved) != 0) {
    throw Error(BP_UNSUPPORTED, "{}: flags {:#x} or reserved {:#x} has unknown bits; pass 0", function, desc.flags,
                desc.reserved);
  }
  if (desc.alignment != 0 && (!std::has_single_bit(desc.alignment) || desc.alignment > kMaxAlignment)) {
    throw Error(BP_INVALID_ARGUMENT, "{}: alignment {} is not a power of two up to {}; 0 is the device's own", function,
                desc.alignment, kMaxAlignment);
  }
  if (desc.bytes == 0) throw Error(BP_INVALID_ARGUMENT, "{}: 0 bytes are no memory; request at least 1", function);
  require_same_device(function, device, stream);
  const auto create =
      external_slot(device, function, "buffer_create_external", &bp_external_api::buffer_create_external);
  return with_handle(device, device.allocator.external_block(desc, type, stream, create));
}

Buffer& Buffer::import_external(Device& device, const bp_external_handle& handle, Stream* stream) {
  constexpr const char* function = "bph_buffer_import_external";
  if (handle.bytes == 0) throw Error(BP_INVALID_ARGUMENT, "{}: handle.bytes is 0; state at least 1", function);
  require_same_device(function, device, stream);
  const auto import = external_slot(device, function, "buffer_import", &bp_external_api::buffer_import);
  return over(device, device.allocator.import_external(handle, import), stream);
}

Buffer& Buffer::map_peer(Device& device, Buffer& source, Stream* stream) {
  constexpr const char* function = "bph_buffer_map_peer";
  if (source.device == &device) {
    throw Error(BP_INVALID_ARGUMENT, "{}: the buffer already belongs to {}; use it as it is", function, device.name);
  }
  require_own_memory(function, block_of(source));
  require_same_device(function, device, stream);
  const PeerAccess access = peer_access(device, *source.device);
  if (!access.has(BP_PEER_OPERAND)) {
    throw Error(BP_UNSUPPORTED, "{}: {} cannot use memory of {} (BP_PEER_OPERAND); copy with bph_copy_across", function,
                device.name, source.device->name);
  }
  enable_peer(access, device, *source.device);
  Block& block = device.allocator.map_peer(source, access);
  block.read_only = source.read_only;
  source.hold();
  try {
    return over(
        device, block, stream, [](void* held) { static_cast<Buffer*>(held)->end_hold(); }, &source);
  } catch (...) {
    source.end_hold();
    throw;
  }
}

bp_external_handle Buffer::exported(const char* type) {
  constexpr const char* function = "bph_buffer_export";
  require_own_memory(function, block_of(*this));
  if (read_only) {
    throw Error(BP_UNSUPPORTED, "{}: the buffer is read-only, and a handle cannot say so; export a copy", function);
  }
  const auto slot = external_slot(*device, function, "buffer_export", &bp_external_api::buffer_export);
  bp_external_handle handle = {};
  handle.struct_size = sizeof(handle);
  bp_error error = fresh_error();
  check(*device, "buffer_export", slot(device->handle, plugin_buffer, type, &handle, &error), error);
  return handle;
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
