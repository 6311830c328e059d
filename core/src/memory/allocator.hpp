// SPDX-License-Identifier: Apache-2.0
// The stream-aware caching allocator over a plugin's raw buffers.
//
// A block of DEVICE memory belongs to the stream that it was allocated for. Streams are in order,
// so a freed block can be reused on its own stream at once; other streams that used it
// (Buffer::record) must pass first. The host writes HOST and SHARED memory without stream order, so
// such a block waits for its own stream too. No lock is held during a plugin call.
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
struct Block;  // private to the allocator, like the next two
struct EndingStream;
struct Pool;

// The largest alignment that a caller may request or a device may have.
inline constexpr uint64_t kMaxAlignment = uint64_t{1} << 30;

// A range of bytes in a plugin buffer.
struct Span {
  bp_buffer* buffer = nullptr;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  Block* block = nullptr;  // the block to release
};

struct AllocatorStats {
  uint64_t allocations, allocations_cached;
  uint64_t bytes_in_use, bytes_in_use_peak, bytes_reserved, bytes_reserved_peak;
  uint64_t trims, out_of_memory_retries;
};

class Allocator {
 public:
  // `custom` (may be null) is the framework's allocator, borrowed. Does not access `device` yet.
  Allocator(Device& device, const bph_allocator* custom);
  ~Allocator();  // call after close
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // At least `bytes` (> 0) of memory of `kind`. Alignment 0 means the device's own. The memory is
  // usable in the order of `stream`, or at once on any stream if that is null. Throws
  // OUT_OF_MEMORY, with the sizes, and UNSUPPORTED.
  Span allocate(uint32_t kind, uint64_t bytes, uint64_t alignment, Stream* stream);
  // Releases a span; pending work of its stream may still use it.
  void release(const Span& span) noexcept;
  // Gives unused cached memory back to the plugin, and returns its size in bytes.
  uint64_t trim() noexcept;
  AllocatorStats stats() const noexcept;
  // Waits for the work of released streams and frees all memory. Call when no object lives, before
  // the plugin's device is closed.
  void close() noexcept;

  // For streams.
  Pool* add_stream(const Ref<Timeline>& timeline);
  void end_stream(std::unique_ptr<EndingStream> ending) noexcept;

  // Frees memory and streams whose work has ended.
  void poll() noexcept;
  void poll_pending() noexcept {
    if (pending_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      poll();
  }

  void require_kind(uint32_t kind) const;  // throws UNSUPPORTED

  // For buffers: a block that keeps the device open until it is released.
  Block& allocate_block(uint32_t kind, uint64_t bytes, uint64_t alignment, Stream* stream);
  Block& empty_block();
  Block& raw_block(uint32_t kind, uint64_t bytes, uint64_t alignment, Stream* stream);
  Block& import_block(const bph_import_desc& desc);
  // Imports host memory for one copy on `stream`; release_block frees it in stream order. Null if
  // the plugin refuses.
  Block* import_for_copy(void* address, uint64_t bytes, Stream& stream);
  void record_use(Block& block, Stream& stream);
  void record_foreign(Block& block, Stream& stream);
  void release_block(Block& block) noexcept;
  // Releases the block that `handle` names, unless another call has released it.
  void release_handle(Block& block, uint64_t handle) noexcept;
  // Keeps the memory alive after its handle is released.
  void hold(Block& block) noexcept;
  void end_hold(Block& block) noexcept;
  // The block's address, for bph_buffer_info; the first call records it. Throws OUT_OF_MEMORY, and
  // the failures of buffer_map.
  Buffer::Address address_of(Block& block);
  // Records the address of memory whose plugin buffer is mapped at `mapping`.
  void note_mapping(Block& block, void* mapping);
  // The buffer that contains the byte at `offset` of `placement`. Call under the address map's
  // lock.
  AddressedBuffer buffer_in(const Placement& placement, uint64_t offset) const noexcept;

  // Call when the device's handle was released: from here on only live buffers keep the device
  // open.
  void device_released() noexcept;

 private:
  struct State;
  Block& import(uint32_t type, uint64_t address, uint64_t bytes, bool hand_out);

  std::unique_ptr<State> state_;
  std::atomic<uint32_t> pending_{0};  // number of waiting blocks and streams
};

}  // namespace backplane::core
