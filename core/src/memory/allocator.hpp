// SPDX-License-Identifier: Apache-2.0
// The stream-aware caching allocator over a plugin's raw buffers.
//
// A block of DEVICE memory belongs to the stream that it was allocated for. A stream executes work
// in order, so the owning stream can reuse a freed block at once. Work of other streams that used
// the block (Buffer::record) must complete first. The host writes HOST and SHARED memory without
// stream order, so a HOST or SHARED block also waits for its own stream. No lock is held during a
// plugin call.
#pragma once

#include <backplane/backplane.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/ref.hpp"
#include "memory/address_map.hpp"
#include "memory/buffer.hpp"

namespace backplane::core {

class Device;
class Stream;
class Timeline;
struct Block;  // private to the allocator, as are EndingStream and Pool
struct EndingStream;
struct PeerAccess;
struct Pool;

// Maximum alignment in bytes that a caller may request or a device may have.
inline constexpr uint64_t kMaxAlignment = uint64_t{1} << 30;

// A range of bytes in a plugin buffer.
struct Span {
  bp_buffer* buffer = nullptr;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  Block* block = nullptr;  // the block that `release` frees
};

struct AllocatorStats {
  uint64_t allocations, allocations_cached;
  uint64_t bytes_in_use, bytes_in_use_peak, bytes_reserved, bytes_reserved_peak;
  uint64_t trims, out_of_memory_retries;
};

class Allocator {
 public:
  // `custom` is the framework's allocator, which is borrowed, or null. The constructor does not
  // access `device`.
  Allocator(Device& device, const bph_allocator* custom);
  ~Allocator();  // calls close
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // Allocates at least `bytes` bytes of memory of `kind`; `bytes` is not 0. Alignment 0 means the
  // device's alignment. The memory can be used in stream order on `stream`, or at once on any
  // stream if `stream` is null. Throws OUT_OF_MEMORY, with the sizes, and UNSUPPORTED.
  Span allocate(uint32_t kind, uint64_t bytes, uint64_t alignment, Stream* stream);
  // Releases a span. Pending work of the span's stream may still use the memory.
  void release(const Span& span) noexcept;
  // Frees unused cached memory, and returns the number of freed bytes.
  uint64_t trim() noexcept;
  AllocatorStats stats() const noexcept;
  // Waits for the work of released streams and frees all memory. Called when no buffer and no
  // stream is alive, before the plugin's device is closed.
  void close() noexcept;

  // Functions for streams.
  Pool* add_stream(const Ref<Timeline>& timeline);
  void end_stream(std::unique_ptr<EndingStream> ending) noexcept;

  // Frees memory and streams whose work has completed.
  void poll() noexcept;
  void poll_pending() noexcept {
    if (pending_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      poll();
  }

  void require_kind(uint32_t kind) const;  // throws UNSUPPORTED

  // Functions for buffers. A returned block keeps the device open until the block is released.
  Block& allocate_block(uint32_t kind, uint64_t bytes, uint64_t alignment, Stream* stream);
  Block& empty_block();
  Block& raw_block(uint32_t kind, uint64_t bytes, uint64_t alignment, Stream* stream);
  Block& import_block(const bph_import_desc& desc);
  // Makes a block over native memory. `native` has been checked, except for its type and value.
  Block& wrap_block(const bp_native_handle& native);
  // Makes a block with memory from `create`, the slot buffer_create_external. The memory can be
  // exported as `type`.
  Block& external_block(const bph_buffer_desc& desc, const char* type, Stream* stream,
                        decltype(bp_external_api::buffer_create_external) create);
  // Calls `slot`, the slot buffer_import, and makes a block over the memory of `handle`. handle.bytes is not 0.
  Block& import_external(const bp_external_handle& handle, decltype(bp_external_api::buffer_import) slot);
  // Makes a block over the memory of another device's buffer. The caller keeps that buffer alive.
  Block& map_peer(const Buffer& source, const PeerAccess& access);
  // Imports host memory for one copy on `stream`. release_block frees the block in stream order.
  // Returns null if the plugin does not import the memory, or if memory is exhausted.
  Block* import_for_copy(void* address, uint64_t bytes, Stream& stream);
  void record_use(Block& block, Stream& stream);
  void record_foreign(Block& block, Stream& stream);
  void release_block(Block& block) noexcept;
  // Releases the block of `handle`, unless another call has already released the block.
  void release_handle(Block& block, uint64_t handle) noexcept;
  // Keeps the block's memory alive until end_hold, even if the block's handle is released.
  void hold(Block& block) noexcept;
  void end_hold(Block& block) noexcept;
  // Returns the block's address for bph_buffer_info. The first call records the address in the
  // AddressMap. Throws OUT_OF_MEMORY and the errors of buffer_map.
  Buffer::Address address_of(Block& block);
  // Records the address of a block whose plugin buffer is mapped at `mapping`.
  void note_mapping(Block& block, void* mapping);
  // Returns the buffer that contains the byte at `offset` of `placement`. The caller holds the lock
  // of the address map.
  AddressedBuffer buffer_in(const Placement& placement, uint64_t offset) const noexcept;

  // Called when the device's handle was released. Afterwards only live buffers keep the device
  // open.
  void device_released() noexcept;

 private:
  struct State;
  // The memory kinds that a slot may report for the buffer that it creates: a mask, and text for messages.
  struct Kinds {
    uint64_t mask;
    const char* text;
  };
  // Calls `create(bp_device*, uint32_t* kind, bp_buffer**, bp_error*)`, which is the slot named
  // `slot`, and makes a block for the new plugin buffer. `start` is the address of the buffer's first
  // byte, or a number with the same alignment.
  template <class Create>
  Block& adopt(const char* slot, uint64_t start, uint64_t bytes, bool hand_out, Kinds kinds, const Create& create);
  Block& import(uint32_t type, uint64_t address, uint64_t bytes, bool hand_out);
  // Calls `create(bp_buffer**, bp_error*)`, which is the slot named `slot`, and makes a block for
  // the new plugin buffer. Frees cached memory and tries again if memory is exhausted.
  template <class Create>
  Block& raw(const char* slot, uint32_t kind, uint64_t bytes, uint64_t alignment, Stream* stream, const Create& create);

  std::unique_ptr<State> state_;
  std::atomic<uint32_t> pending_{0};  // number of waiting blocks and streams
};

}  // namespace backplane::core
