// SPDX-License-Identifier: Apache-2.0
// The implementation of the simulated card: its memory, and the threads that execute its queues.
#include "card.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>

namespace {

constexpr uint64_t kMemory = uint64_t{4} << 30;
constexpr std::size_t kAlignment = 256;

struct Free {
  void operator()(std::byte* bytes) const { ::operator delete(bytes, std::align_val_t{kAlignment}); }
};
struct Allocation {
  std::unique_ptr<std::byte, Free> bytes;
  uint64_t size = 0;
};

struct Card {
  std::mutex mutex;
  std::unordered_map<card_memory, Allocation> allocations;
  card_memory last = 0;
  uint64_t used = 0;

  // Returns the address of the bytes on the card. Returns null if the allocation does not contain the whole
  // range.
  std::byte* find(card_memory memory, uint64_t offset, uint64_t bytes) {
    std::lock_guard lock(mutex);
    const auto found = allocations.find(memory);
    if (found == allocations.end() || offset > found->second.size || bytes > found->second.size - offset)
      return nullptr;
    return found->second.bytes.get() + offset;
  }
};
Card& card() {
  static Card* const only = new Card;  // never destroyed, because the card must exist until all exit handlers have run
  return *only;
}

}  // namespace

struct card_fence {
  std::atomic<int> references{1};
  std::mutex mutex;
  std::condition_variable passed;
  card_result result = CARD_PENDING;
  uint64_t time = 0;

  void end(card_result how) {
    {
      std::lock_guard lock(mutex);
      result = how;
      const auto now = std::chrono::steady_clock::now().time_since_epoch();
      time = static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
    }
    passed.notify_all();
  }
};

namespace {

struct Release {
  void operator()(card_fence* fence) const { card_fence_release(fence); }
};
using Fence = std::unique_ptr<card_fence, Release>;
Fence share(card_fence* fence) {
  fence->references.fetch_add(1);
  return Fence(fence);
}

}  // namespace

struct card_queue {
  using Command = std::function<card_result()>;

  std::mutex mutex;
  std::condition_variable filled;
  std::deque<Command> commands;
  bool closing = false;
  card_result failure = CARD_OK;  // only the worker accesses this field
  std::thread worker;

  card_result push(Command command) {
    {
      std::lock_guard lock(mutex);
      commands.push_back(std::move(command));
    }
    filled.notify_one();
    return CARD_OK;
  }
  void work() {
    for (;;) {
      std::unique_lock lock(mutex);
      filled.wait(lock, [&] { return closing || !commands.empty(); });
      if (commands.empty()) return;
      const Command command = std::move(commands.front());
      commands.pop_front();
      lock.unlock();
      if (const card_result result = command(); failure == CARD_OK) failure = result;
    }
  }
};

uint64_t card_memory_size(void) { return kMemory; }
uint64_t card_memory_free(void) {
  std::lock_guard lock(card().mutex);
  return kMemory - card().used;
}
card_result card_allocate(uint64_t bytes, card_memory* out) {
  std::lock_guard lock(card().mutex);
  if (bytes > kMemory - card().used) return CARD_NO_MEMORY;
  auto* memory = static_cast<std::byte*>(::operator new(bytes, std::align_val_t{kAlignment}, std::nothrow));
  if (memory == nullptr) return CARD_NO_MEMORY;
  card().used += bytes;
  *out = ++card().last;
  card().allocations[*out] = {std::unique_ptr<std::byte, Free>(memory), bytes};
  return CARD_OK;
}
void card_release(card_memory memory) {
  std::lock_guard lock(card().mutex);
  card().used -= card().allocations.at(memory).size;
  card().allocations.erase(memory);
}

card_result card_queue_open(card_queue** out) {
  auto queue = std::make_unique<card_queue>();
  // Blocks all signals for the card's thread, because it must not run signal handlers of the process.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  card_result result = CARD_OK;
  try {
    queue->worker = std::thread(&card_queue::work, queue.get());
    *out = queue.release();
  } catch (const std::system_error&) {
    result = CARD_NO_THREAD;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return result;
}
void card_queue_close(card_queue* queue) {
  {
    std::lock_guard lock(queue->mutex);
    queue->closing = true;
  }
  queue->filled.notify_one();
  queue->worker.join();
  delete queue;
}

card_result card_write(card_queue* queue, card_memory to, uint64_t offset, const void* from, uint64_t bytes) {
  return queue->push([=] {
    std::byte* const target = queue->failure == CARD_OK ? card().find(to, offset, bytes) : nullptr;
    if (target == nullptr) return CARD_BAD_ACCESS;
    std::memcpy(target, from, bytes);
    return CARD_OK;
  });
}
card_result card_read(card_queue* queue, void* to, card_memory from, uint64_t offset, uint64_t bytes) {
  return queue->push([=] {
    const std::byte* const source = queue->failure == CARD_OK ? card().find(from, offset, bytes) : nullptr;
    if (source == nullptr) return CARD_BAD_ACCESS;
    std::memcpy(to, source, bytes);
    return CARD_OK;
  });
}
card_result card_move(card_queue* queue, card_memory to, uint64_t to_offset, card_memory from, uint64_t from_offset,
                      uint64_t bytes) {
  return queue->push([=] {
    if (queue->failure != CARD_OK) return queue->failure;
    std::byte* const target = card().find(to, to_offset, bytes);
    const std::byte* const source = card().find(from, from_offset, bytes);
    if (target == nullptr || source == nullptr) return CARD_BAD_ACCESS;
    std::memcpy(target, source, bytes);
    return CARD_OK;
  });
}
card_result card_wait_for(card_queue* queue, card_fence* fence) {
  return queue->push(
      [kept = std::shared_ptr<card_fence>(share(fence))] { return card_fence_wait(kept.get(), UINT64_MAX); });
}
card_result card_signal(card_queue* queue, card_fence** out) {
  *out = new card_fence;
  return queue->push([queue, kept = std::shared_ptr<card_fence>(share(*out))] {
    kept->end(queue->failure);
    return CARD_OK;
  });
}

card_result card_launch(card_queue* queue, card_kernel kernel, const card_argument* arguments, uint32_t count,
                        uint64_t items) {
  std::array<card_argument, CARD_ARGUMENTS> kept{};
  std::copy_n(arguments, count, kept.begin());
  return queue->push([=] {
    if (queue->failure != CARD_OK) return queue->failure;
    card_parameter parameters[CARD_ARGUMENTS] = {};
    for (uint32_t i = 0; i < count; ++i) {
      const card_argument& each = kept[i];
      parameters[i].value = each.value;
      if (each.memory == 0) continue;
      parameters[i].address = card().find(each.memory, each.offset, each.bytes);
      if (parameters[i].address == nullptr) return CARD_BAD_ACCESS;
    }
    kernel(parameters, items);
    return CARD_OK;
  });
}

card_result card_fence_wait(card_fence* fence, uint64_t timeout_ns) {
  std::unique_lock lock(fence->mutex);
  const auto passed = [&] { return fence->result != CARD_PENDING; };
  constexpr uint64_t kLongest = uint64_t{1} << 62;  // limit, because the clock would overflow with a longer timeout
  if (timeout_ns > kLongest) {
    fence->passed.wait(lock, passed);
  } else {
    fence->passed.wait_for(lock, std::chrono::nanoseconds(timeout_ns), passed);
  }
  return fence->result;
}
uint64_t card_fence_time(card_fence* fence) {
  std::lock_guard lock(fence->mutex);
  return fence->time;
}
void card_fence_release(card_fence* fence) {
  if (fence->references.fetch_sub(1) == 1) delete fence;
}
