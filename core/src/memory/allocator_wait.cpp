// SPDX-License-Identifier: Apache-2.0
// Records the work that a released block waits for, and polls until that work has completed.
#include <algorithm>
#include <iterator>
#include <mutex>
#include <new>

#include "loading/registry.hpp"
#include "memory/allocator_state.hpp"

namespace backplane::core {

// Records the points that the block waits for, and requests markers for these points.
void Allocator::State::collect_uses(Block& block) noexcept {
  for (Use& use : block.uses) use.point = use.timeline->point();
  if (block.source == Block::Source::custom && block.user &&
      find_handle<Stream>(reinterpret_cast<void*>(block.custom_stream))) {
    block.user = {};  // the block does not wait for its stream: put_back passes the stream to the framework
  }
  try {
    if (block.user && !block.user->idle()) block.uses.push_back({block.user, block.user->point()});
    block.user = {};
    while (block.any_stream) {
      lock.lock();
      const size_t most = block.uses.size() + timelines.size();
      if (block.uses.capacity() >= most) {
        for (const Ref<Timeline>& timeline : timelines) {
          if (!timeline->idle()) block.uses.push_back({timeline, timeline->point()});
        }
        block.any_stream = false;
      }
      lock.unlock();
      if (block.any_stream) block.uses.reserve(most);
    }
  } catch (const std::bad_alloc&) {
    // The allocation failed. `user` or `any_stream` is still set, so the next poll tries again.
  }
  for (const Use& use : block.uses) use.timeline->request_marker();
}

bool Allocator::State::drop_passed(Block& block) noexcept {
  std::erase_if(block.uses, [](const Use& use) { return use.timeline->passed(use.point); });
  return block.uses.empty() && !block.user && !block.any_stream;
}

// Frees a block or returns it to its pool. Called when nothing uses the block any more.
void Allocator::State::put_back(Block& block) noexcept {
  switch (block.source) {
    case Block::Source::pool: {
      const std::lock_guard guard(lock);
      block.state = Block::State::binned;
      block.segment->pool->bins[block.size_class].push(&block);
      return;
    }
    case Block::Source::raw: {
      forget_placement(block.placement);
      device.api->buffer_destroy(device.handle, block.plugin_buffer);
      const std::lock_guard guard(lock);
      stats.bytes_reserved -= block.size;
      break;
    }
    case Block::Source::imported:
      forget_placement(block.placement);
      if (block.plugin_buffer != nullptr) device.api->buffer_destroy(device.handle, block.plugin_buffer);
      if (block.release != nullptr) block.release(block.context);
      break;
    case Block::Source::custom: {
      const auto stream = reinterpret_cast<bph_stream*>(block.custom_stream);
      custom->release(custom->context, block.custom_buffer, block.custom_offset, block.size,
                      find_handle<Stream>(stream) == nullptr ? nullptr : stream);
      break;
    }
    case Block::Source::empty:
      break;
  }
  recycle_block(block);
}

void Allocator::State::poll_timelines() noexcept {
  for (size_t index = 0;; ++index) {
    Ref<Timeline> timeline;
    {
      const std::lock_guard guard(lock);
      if (index >= timelines.size()) return;
      timeline = timelines[index];
    }
    timeline->poll(device);
  }
}

void Allocator::State::finish_stream(EndingStream* ended) noexcept {
  const std::unique_ptr<EndingStream> stream(ended);
  if (stream->handle != nullptr) device.api->stream_destroy(device.handle, stream->handle);
  stream->semaphores.clear();
  stream->timeline->complete(stream->timeline->point());
  stream->timeline->destroy_markers(device);
  const std::unique_ptr<Pool> pool(stream->pool);
  BlockList scratch;
  {
    const std::lock_guard guard(lock);
    std::erase_if(timelines, [&](const Ref<Timeline>& each) { return each.get() == stream->timeline.get(); });
    pool->flush(&scratch);
    Pool& shared = *find_shared(pool->kind, pool->alignment);
    while (pool->segments != nullptr) {
      pool->segments->stamp = 0;
      shared.adopt_segment(pool->segments);
    }
    Pool** at = &pools;
    while (*at != pool.get()) at = &(*at)->next;
    *at = pool->next;
  }
  while (Block* block = scratch.pop()) recycle_block(*block);
  if (stream->release != nullptr) stream->release(stream->context);
}

bool Allocator::State::must_defer(const EndingStream& stream) noexcept {
  if (stream.release == nullptr || !StreamLock::held_by_thread()) return false;
  StreamLock::defer_releases();
  return true;
}

namespace {

// Number of polls on this thread's stack. Polls may be nested, because a poll calls the plugin,
// which may allocate memory.
constinit thread_local uint32_t polls_on_thread = 0;

}  // namespace

// Takes all items out of a list, and registers an active poll until the end of the scope.
template <class List>
class Allocator::State::Taken {
 public:
  Taken(State& state, List& from) noexcept : state_(state) {
    const std::lock_guard guard(state.lock);
    std::swap(list, from);
    poll_ = {state.next_poll++, std::exchange(state.active_polls, &poll_)};
    ++polls_on_thread;
  }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  ~Taken() {
    --polls_on_thread;
    {
      const std::lock_guard guard(state_.lock);
      ActivePoll** at = &state_.active_polls;
      while (*at != &poll_) at = &(*at)->next;
      *at = poll_.next;
    }
    state_.polls_ended.fetch_add(1, std::memory_order_release);
    state_.polls_ended.notify_all();
  }

  List list = {};

 private:
  State& state_;
  ActivePoll poll_ = {};
};

// Waits until every poll that another thread has begun has returned. Returns false if there was no
// such poll. Returns false at once inside a poll, because two polls would otherwise wait for each
// other.
bool Allocator::State::await_polls() noexcept {
  if (polls_on_thread != 0) return false;
  lock.lock();
  const uint64_t last = next_poll;
  lock.unlock();
  for (bool waited = false;; waited = true) {
    const uint64_t ended = polls_ended.load(std::memory_order_acquire);
    bool begun_before = false;
    {
      const std::lock_guard guard(lock);
      for (const ActivePoll* poll = active_polls; poll != nullptr; poll = poll->next)
        begun_before |= poll->number < last;
    }
    if (!begun_before) return waited;
    polls_ended.wait(ended, std::memory_order_acquire);
  }
}

void Allocator::State::poll_ending(uint64_t timeout_ns) noexcept {
  Taken taken(*this, ending);
  EndingStream*& list = taken.list;
  while (list != nullptr) {
    EndingStream* stream = std::exchange(list, list->next);
    bp_error error = fresh_error();
    // Any status except TIMEOUT means that the stream's work no longer accesses memory.
    if (!must_defer(*stream) &&
        device.api->stream_wait(device.handle, stream->handle, timeout_ns, &error) != BP_TIMEOUT) {
      finish_stream(stream);
      pending.fetch_sub(1, std::memory_order_relaxed);
    } else {
      const std::lock_guard guard(lock);
      stream->next = std::exchange(ending, stream);
    }
  }
}

void Allocator::State::poll_waiting() noexcept {
  // Owners of imported and custom memory are notified after the poll, because their callbacks may
  // wait for a thread that waits for polls.
  BlockList owned;
  {
    Taken taken(*this, waiting);
    while (Block* block = taken.list.pop()) {
      if (block->user || block->any_stream) collect_uses(*block);
      if (!drop_passed(*block)) {
        const std::lock_guard guard(lock);
        waiting.push(block);
      } else if (block->source == Block::Source::imported || block->source == Block::Source::custom) {
        owned.push(block);
      } else {
        put_back(*block);
        pending.fetch_sub(1, std::memory_order_relaxed);
      }
    }
  }
  // If this thread holds a stream's lock, owners are notified later. An owner's callback may need
  // another lock, whose holder may be waiting for the stream's lock.
  const bool later = StreamLock::held_by_thread();
  if (later && owned.head != nullptr) StreamLock::defer_releases();
  while (Block* block = owned.pop()) {
    if (later) {
      const std::lock_guard guard(lock);
      waiting.push(block);
      continue;
    }
    put_back(*block);
    pending.fetch_sub(1, std::memory_order_relaxed);
  }
}

void Allocator::poll() noexcept {
  if (pending_.load(std::memory_order_relaxed) == 0) return;
  state_->poll_timelines();
  state_->poll_ending(0);
  state_->poll_waiting();
}

Pool* Allocator::add_stream(const Ref<Timeline>& timeline) {
  const uint64_t alignment = state_->alignment_of(0);
  const Pool& shared = state_->shared_pool(BP_MEMORY_DEVICE, alignment);
  auto pool = std::make_unique<Pool>();
  pool->device = shared.device;
  pool->alignment = alignment;
  pool->quantum = shared.quantum;
  pool->timeline = timeline;
  // Larger storage for `timelines`, allocated and freed while the lock is not held.
  std::vector<Ref<Timeline>> room;
  for (;;) {
    size_t needed = 0;
    {
      const std::lock_guard guard(state_->lock);
      std::vector<Ref<Timeline>>& timelines = state_->timelines;
      if (timelines.size() == timelines.capacity() && room.capacity() > timelines.size()) {
        std::move(timelines.begin(), timelines.end(), std::back_inserter(room));
        std::swap(timelines, room);
      }
      if (timelines.size() < timelines.capacity()) {
        timelines.push_back(timeline);
        pool->next = state_->pools;
        state_->pools = pool.get();
        return pool.release();
      }
      needed = 2 * timelines.size() + 8;
    }
    room.reserve(needed);
  }
}

void Allocator::end_stream(std::unique_ptr<EndingStream> ending) noexcept {
  State& state = *state_;
  EndingStream* stream = ending.release();
  bool pending_work = stream->handle != nullptr && !stream->timeline->idle();
  if (pending_work) {
    bp_error error = fresh_error();
    pending_work = state.device.api->stream_wait(state.device.handle, stream->handle, 0, &error) == BP_TIMEOUT;
  }
  if (!pending_work && !state.must_defer(*stream)) return state.finish_stream(stream);
  pending_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard guard(state.lock);
  stream->next = std::exchange(state.ending, stream);
}

// Frees the blocks that still wait for streams of other devices. The plugin's device is about to close, so it cannot
// keep them.
void Allocator::State::free_waiting() noexcept {
  bool in_use = false;
  while (Block* block = waiting.pop()) {
    in_use |= !drop_passed(*block);
    block->uses.clear();
    block->user = {};
    block->any_stream = false;
    put_back(*block);
    pending.fetch_sub(1, std::memory_order_relaxed);
  }
  if (!in_use || !device.plugin->registry) return;
  const Error line(BP_OK,
                   "{}: the device closes, and a stream of another device used its memory and was not waited for; wait "
                   "for that stream before you release the last object of the device",
                   device.name);
  device.plugin->registry->log(BP_LOG_WARNING, line.what());
}

void Allocator::close() noexcept {
  State& state = *state_;
  state.poll_ending(BP_WAIT_FOREVER);
  state.poll_waiting();
  state.free_waiting();
  state.trim_passed();
  trim();
  while (Pool* pool = state.pools) {
    state.pools = pool->next;
    delete pool;
  }
}

}  // namespace backplane::core
