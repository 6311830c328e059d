// SPDX-License-Identifier: Apache-2.0
// The state that the allocator's sources share: allocator.cpp (allocation and release),
// allocator_grow.cpp (search, growth, exhaustion), allocator_address.cpp (addresses) and
// allocator_wait.cpp (pending memory and streams).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/spin_lock.hpp"
#include "loading/device.hpp"
#include "memory/allocator.hpp"
#include "memory/pool.hpp"
#include "streams/ending_stream.hpp"
#include "streams/stream.hpp"

namespace backplane::core {

struct Allocator::State {
  State(Device& owner, const bph_allocator* framework, std::atomic<uint32_t>& pending_count)
      : device(owner), custom(framework), pending(pending_count) {}

  Device& device;
  const bph_allocator* const custom;
  std::atomic<uint32_t>& pending;

  mutable SpinLock lock;  // guards the members from `pools` to `retained`
  // All pools. A stream's pool has a timeline; a shared pool has a kind and an alignment.
  Pool* pools = nullptr;
  std::vector<Ref<Timeline>> timelines;  // the timelines of live and ending streams
  EndingStream* ending = nullptr;
  BlockList waiting;
  BlockList spares;  // blocks without memory; some keep a slot in the handle table
  // A poll that is running in some thread. The poll has taken the items out of `ending` or
  // `waiting`, so that list is incomplete until the poll ends.
  struct ActivePoll {
    uint64_t number;
    ActivePoll* next;
  };
  template <class List>
  class Taken;
  ActivePoll* active_polls = nullptr;
  uint64_t next_poll = 1;
  std::atomic<uint64_t> polls_ended{0};
  AllocatorStats stats = {};
  uint64_t live = 0;  // number of live buffers, which keep the device open
  // True while live buffers hold a reference to the device. Also stays true without live buffers
  // while the device has a handle, so that releasing the last buffer is cheap.
  bool retained = false;

  std::mutex records_mutex;     // guards Block::uses of live blocks
  std::mutex placements_mutex;  // held while a thread adds the placement of a block or of a segment

  // Functions in allocator.cpp.
  uint64_t alignment_of(uint64_t alignment) const noexcept;
  Pool& shared_pool(uint32_t kind, uint64_t alignment);                 // creates the pool if needed
  Pool* find_shared(uint32_t kind, uint64_t alignment) const noexcept;  // the caller holds the lock
  Pool& pool_for(uint32_t kind, uint64_t alignment, Stream* stream);
  Block& take(uint32_t kind, uint64_t bytes, uint64_t alignment, Stream* stream, bool hand_out);
  Block& take_custom(uint32_t kind, uint64_t bytes, uint64_t alignment, Stream* stream, bool hand_out);
  // The caller holds the lock.
  void hand(Block& block, uint64_t bytes, Stream* stream, bool hand_out, bool cached) noexcept;
  // The caller holds the lock.
  void count(Block& block, bool hand_out, bool cached) noexcept;
  Block& fresh_block();
  void recycle_block(Block& block) noexcept;  // moves the block to `spares`
  // The caller holds the lock. Returns true if only this block kept the device open.
  bool uncount(Block& block) noexcept;
  // `handle` is 0 if the block has no handle or an invalidated handle.
  void give_back(Block& block, uint64_t handle) noexcept;

  // Functions in allocator_grow.cpp.
  void require_offered(uint32_t kind, uint64_t bytes) const;
  // Searches the memory of the pool, and completely free segments that no stream owns. If `share` is true, also takes a
  // part of a segment that no stream owns, although such a block is slower to release. The caller holds the lock.
  Block* search(Pool& pool, uint32_t size_class, bool share, BlockList* scratch) noexcept;
  Block& take_slow(Pool& pool, uint32_t size_class, uint64_t bytes, Stream* stream, bool hand_out);
  bp_status create_raw(uint32_t kind, uint64_t bytes, uint64_t alignment, bp_buffer** out, bp_error* error) noexcept;
  // Adds the bytes of a buffer that the plugin has created to the statistics. Returns the plugin's status, or INTERNAL
  // if the plugin returned OK without a buffer.
  bp_status count_reserved(bp_status status, const bp_buffer* made, uint64_t bytes, bp_error* error) noexcept;
  uint64_t trim_passed() noexcept;
  [[noreturn]] void exhausted(uint32_t kind, uint64_t bytes, const bp_error& reported) const;
  void reclaim() noexcept;
  void reclaim_pending(Stream* stream);

  // Functions in allocator_address.cpp.
  const Placement& placement_of(Block& block, void* mapping);
  // Called before the memory is freed.
  static void forget_placement(std::atomic<Placement*>& placement) noexcept;

  // Functions in allocator_wait.cpp.
  void collect_uses(Block& block) noexcept;
  static bool drop_passed(Block& block) noexcept;
  void put_back(Block& block) noexcept;
  void poll_timelines() noexcept;
  void poll_ending(uint64_t timeout_ns) noexcept;
  void poll_waiting() noexcept;
  void free_waiting() noexcept;
  void finish_stream(EndingStream* ended) noexcept;
  // Returns true if the stream's release callback must wait until this thread has released its
  // locks.
  static bool must_defer(const EndingStream& stream) noexcept;
  bool await_polls() noexcept;
};

}  // namespace backplane::core
