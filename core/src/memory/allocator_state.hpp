// SPDX-License-Identifier: Apache-2.0
// What the allocator's parts share: allocator.cpp (blocks in and out), allocator_grow.cpp (search, growth, exhaustion)
// and allocator_wait.cpp (memory and streams whose work is pending).
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

  mutable SpinLock lock;  // guards the rest
  Pool* pools = nullptr;  // all; a stream's have its timeline, the shared ones come by kind and alignment
  std::vector<Ref<Timeline>> timelines;  // of live and ending streams
  EndingStream* ending = nullptr;
  BlockList waiting;
  BlockList spares;  // blocks without memory, some with a handle's slot
  // A thread's poll at what it took out of `ending` or `waiting`: neither list tells of it until the poll ends.
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
  uint64_t live = 0;      // blocks handed out as buffers: the device stays open while there are any
  bool retained = false;  // by the live ones; kept while the device has a handle, so that the last one costs no more

  std::mutex records_mutex;  // guards Block::uses of live blocks

  // allocator.cpp
  uint64_t alignment_of(uint64_t alignment) const noexcept;
  Pool& shared_pool(uint32_t kind, uint64_t alignment);                 // made if it is not there
  Pool* find_shared(uint32_t kind, uint64_t alignment) const noexcept;  // locked
  Pool& pool_for(uint32_t kind, uint64_t alignment, Stream* stream);
  Block& take(uint32_t kind, uint64_t bytes, uint64_t alignment, Stream* stream, bool hand_out);
  Block& take_custom(uint32_t kind, uint64_t bytes, uint64_t alignment, Stream* stream, bool hand_out);
  void hand(Block& block, uint64_t bytes, Stream* stream, bool hand_out, bool cached) noexcept;  // locked
  void count(Block& block, bool hand_out, bool cached) noexcept;                                 // locked
  Block& fresh_block();
  void recycle_block(Block& block) noexcept;                // to the spares
  bool uncount(Block& block) noexcept;                     // locked; true if the device was kept open by this one alone
  void give_back(Block& block, uint64_t handle) noexcept;  // handle 0: it has none, or it is retired

  // allocator_grow.cpp
  void require_offered(uint32_t kind, uint64_t bytes) const;
  // In memory that is there; `share` also in parts of what no stream owns, which come back by a slower path. Locked.
  Block* search(Pool& pool, uint32_t size_class, bool share, BlockList* scratch) noexcept;
  Block& take_slow(Pool& pool, uint32_t size_class, uint64_t bytes, Stream* stream, bool hand_out);
  bp_status create_raw(uint32_t kind, uint64_t bytes, uint64_t alignment, bp_buffer** out, bp_error* error) noexcept;
  uint64_t trim_passed() noexcept;
  [[noreturn]] void exhausted(uint32_t kind, uint64_t bytes, const bp_error& reported) const;
  void reclaim() noexcept;
  void reclaim_pending(Stream* stream);

  // allocator_address.cpp
  const Placement& placement_of(Block& block, void* mapping);
  static void forget_placement(std::atomic<Placement*>& placement) noexcept;  // before the memory is given back

  // allocator_wait.cpp
  void collect_uses(Block& block) noexcept;
  static bool drop_passed(Block& block) noexcept;
  void put_back(Block& block) noexcept;
  void poll_timelines() noexcept;
  void poll_ending(uint64_t timeout_ns) noexcept;
  void poll_waiting() noexcept;
  void finish_stream(EndingStream* ended) noexcept;
  bool await_polls() noexcept;
};

}  // namespace backplane::core
