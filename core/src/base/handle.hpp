// SPDX-License-Identifier: Apache-2.0
// Handles of the host API. Every use checks the handle, so a stale or foreign handle causes an
// error instead of a crash.
//
// A handle is generation << 32 | slot << 8 | type. Slots are never freed; each insert and renew changes the slot's
// generation. A released handle therefore matches again only after 2^32 uses of the slot. Generations start at a random
// salt, so handles of another copy of this library do not match either.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/error.hpp"

namespace backplane::core {

enum class HandleType : uint8_t {
  registry = 0xA1,
  plugin = 0xA2,
  device = 0xA3,
  stream = 0xA4,
  event = 0xA5,
  buffer = 0xA6,
  graph = 0xA7,
  semaphore = 0xA8
};

const char* handle_type_name(HandleType type) noexcept;

class HandleTable {
 public:
  static constexpr uint32_t kChunkBits = 12;
  static constexpr uint32_t kIndexBits = 24;
  static constexpr uint32_t kChunkCount = 1u << (kIndexBits - kChunkBits);

  // Returns a new handle for `object`. Throws bad_alloc, or OUT_OF_MEMORY if all handles are in
  // use.
  uint64_t insert(HandleType type, void* object);
  // Removes the object from the table, and returns the object. Returns null if the handle is invalid. If two threads
  // remove the same handle, only one of them gets the object.
  void* remove(HandleType type, uint64_t handle) noexcept;
  // Like remove, but the caller keeps the slot for `renew` or `drop`. Returns false if the handle
  // is invalid. Takes no lock, so the caller must prevent concurrent calls for the same handle.
  bool invalidate(uint64_t handle) noexcept {
    Slot* slot = slot_of(handle);
    if (slot == nullptr || slot->handle.load(std::memory_order_relaxed) != handle) return false;
    slot->handle.store(0, std::memory_order_release);
    return true;
  }
  // Returns a new handle for the object of an invalidated handle, in the same slot. Takes no lock.
  uint64_t renew(uint64_t invalidated) noexcept {
    Slot& slot = *slot_of(invalidated);
    const uint64_t handle = static_cast<uint64_t>(slot.next_generation()) << 32 | static_cast<uint32_t>(invalidated);
    slot.handle.store(handle, std::memory_order_release);
    return handle;
  }
  // Frees the slot of an invalidated handle.
  void drop(uint64_t invalidated) noexcept;
  // Returns the object, or null if the handle is invalid.
  void* find(HandleType type, uint64_t handle) const noexcept {
    const Slot* slot = slot_of(handle);
    if (slot == nullptr || slot->handle.load(std::memory_order_acquire) != handle ||
        static_cast<uint8_t>(handle) != static_cast<uint8_t>(type)) {
      return nullptr;
    }
    return slot->object;
  }

  // Invalidates all handles of the parent process. Called in a forked child.
  void forget_after_fork() noexcept;
  // In a forked child, returns true if the child did not create `handle`. Returns false in any other process.
  bool from_before_fork(uint64_t handle) const noexcept;
  std::mutex& mutex() noexcept { return mutex_; }

  // Returns the library's only table, which is never destroyed. The process may therefore exit with
  // live objects.
  static HandleTable& instance() noexcept;

 private:
  struct Slot {
    std::atomic<uint64_t> handle{0};
    void* object = nullptr;
    std::atomic<uint32_t> generation{0};  // one thread at a time writes the generation; any thread reads it

    uint32_t next_generation() noexcept {
      const uint32_t next = generation.load(std::memory_order_relaxed) + 1;
      generation.store(next, std::memory_order_relaxed);
      return next;
    }
  };
  Slot* slot_of(uint64_t handle) const noexcept {
    const uint32_t index = static_cast<uint32_t>(handle >> 8) & ((1u << kIndexBits) - 1);
    Slot* chunk = chunks_[index >> kChunkBits].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : chunk + (index & ((1u << kChunkBits) - 1));
  }

  std::atomic<Slot*> chunks_[kChunkCount] = {};
  std::mutex mutex_;
  std::vector<uint32_t> free_;
  uint32_t used_ = 0;
  uint32_t salt_ = 0;
  std::atomic<bool> forked_{false};
};

// Storage that is never destroyed and has a constant address.
union HandleTableStorage {
  constexpr HandleTableStorage() : table() {}
  ~HandleTableStorage() {}
  HandleTable table;
};
extern constinit HandleTableStorage handle_table_storage;
inline HandleTable& HandleTable::instance() noexcept { return handle_table_storage.table; }

template <class T>
T* find_handle(const void* handle) noexcept {
  return static_cast<T*>(HandleTable::instance().find(T::kHandleType, reinterpret_cast<uint64_t>(handle)));
}

// Throws the error for a handle that is null, stale, foreign, or created before fork.
[[noreturn]] void bad_handle(HandleType type, const void* handle, const char* function);

// Returns the object of a handle. Throws INVALID_ARGUMENT if the handle is null, released or
// foreign, and UNAVAILABLE if it was created before fork. The message names `function`.
template <class T>
T& require(const void* handle, const char* function) {
  T* object = find_handle<T>(handle);
  if (object == nullptr) [[unlikely]]
    bad_handle(T::kHandleType, handle, function);
  return *object;
}

}  // namespace backplane::core
