// SPDX-License-Identifier: Apache-2.0
// The stream-aware caching allocator over a plugin's raw buffers.
//
// A block of DEVICE memory belongs to the stream that it was allocated for: freed, it is reused on that stream at once,
// because the stream is in order. Other streams that used it (Buffer::record) must pass first. HOST and SHARED memory,
// which the host writes without asking a stream, waits for its own stream too. No lock is held while the plugin is
// called.
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
struct Block;  // the allocator's own, and so are these
struct EndingStream;
struct Pool;

// The largest alignment that may be asked for, or that a device may have.
inline constexpr uint64_t kMaxAlignment = uint64_t{1} << 30;

// A piece of device memory: a plugin buffer, the bytes from its start, and how many.
struct Span {
  bp_buffer* buffer = nullptr;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  Block* block = nullptr;  // what gives it back
};

struct AllocatorStats {
  uint64_t allocations, allocations_cached;
  uint64_t bytes_in_use, bytes_in_use_peak, bytes_reserved, bytes_reserved_peak;
  uint64_t trims, out_of_memory_retries;
};

class Allocator {
 public:
  // `custom` (may be null) is the framework's allocator, borrowed. Reads nothing of the device yet.
  Allocator(Device& device, const bph_allocator* custom);
  ~Allocator();  // closed
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // At least `bytes` (> 0) of memory of `kind`, aligned (0: the device's own), usable in the order of `stream` (null:
  // at once from any). Throws OUT_OF_MEMORY with the numbers, UNSUPPORTED.
  Span allocate(uint32_t kind, uint64_t bytes, uint64_t alignment, Stream* stream);
  // Gives a span back; its stream's pending work may still use it.
  void release(const Span& span) noexcept;
  // Gives cached memory that nothing uses back to the plugin; returns the bytes.
  uint64_t trim() noexcept;
  AllocatorStats stats() const noexcept;
  // Waits for released streams' work and gives everything back; every live object is gone. Before the plugin's device
  // closes.
  void close() noexcept;

  // For streams.
  Pool* add_stream(const Ref<Timeline>& timeline);
  void end_stream(std::unique_ptr<EndingStream> ending) noexcept;

  // Lets memory and streams go whose work has ended.
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
  // Host memory for one copy on `stream`; release_block gives it back in stream order. Null if the plugin refuses it.
  Block* import_for_copy(void* address, uint64_t bytes, Stream& stream);
  void record_use(Block& block, Stream& stream);
  void record_foreign(Block& block, Stream& stream);
  void release_block(Block& block) noexcept;
  // The same for what `handle` names, unless another call released it already.
  void release_handle(Block& block, uint64_t handle) noexcept;
  // Keeps the memory beyond its handle's release.
  void hold(Block& block) noexcept;
  void end_hold(Block& block) noexcept;
  // The block's address, for bph_buffer_info; recorded at the first call. Throws OUT_OF_MEMORY, or as buffer_map.
  Buffer::Address address_of(Block& block);
  // The same for memory whose plugin buffer is mapped at `mapping`.
  void note_mapping(Block& block, void* mapping);
  // The buffer in which a byte of `placement` lies. Called under the address map's lock.
  AddressedBuffer buffer_in(const Placement& placement, uint64_t offset) const noexcept;

  // The device's own handle is gone: from here on only live buffers keep it open.
  void device_released() noexcept;

 private:
  struct State;
  Block& import(uint32_t type, uint64_t address, uint64_t bytes, bool hand_out);

  std::unique_ptr<State> state_;
  std::atomic<uint32_t> pending_{0};  // blocks and streams that wait
};

}  // namespace backplane::core
