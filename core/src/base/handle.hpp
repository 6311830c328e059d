// SPDX-License-Identifier: Apache-2.0
// Handles of the host API: values that are checked at every use, so that a stale or foreign one is an error, not a
// crash.
//
// A handle is generation << 32 | slot << 8 | type. Slots live for ever, and their generation changes at each insert and
// renew, so that a released handle never matches again (until 2^32 reuses of one slot). Generations start at a salt, so
// that a handle of another copy of this library in the process does not match either.
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
  buffer = 0xA6
};

const char* handle_type_name(HandleType type) noexcept;

class HandleTable {
 public:
  static constexpr uint32_t kChunkBits = 12;
  static constexpr uint32_t kIndexBits = 24;
  static constexpr uint32_t kChunkCount = 1u << (kIndexBits - kChunkBits);

  // A new handle for `object`. Throws bad_alloc.
  uint64_t insert(HandleType type, void* object);
  // Takes the object out, null if the handle is not valid: of two concurrent removes one gets it.
  void* remove(HandleType type, uint64_t handle) noexcept;
  // As remove, but the caller keeps the slot for `renew` or `drop`. Takes no lock: the caller excludes other calls for the
  // same handle.
  bool invalidate(uint64_t handle) noexcept {
    Slot* slot = slot_of(handle);
    if (slot == nullptr || slot->handle.load(std::memory_order_relaxed) != handle) return false;
    slot->handle.store(0, std::memory_order_release);
    return true;
  }
  // A new handle for the object of a invalidated one. Takes no lock.
  uint64_t renew(uint64_t invalidated) noexcept {
    Slot& slot = *slot_of(invalidated);
    const uint64_t handle = static_cast<uint64_t>(slot.next_generation()) << 32 | static_cast<uint32_t>(invalidated);
    slot.handle.store(handle, std::memory_order_release);
    return handle;
  }
  // Gives the slot of a invalidated handle back.
  void drop(uint64_t invalidated) noexcept;
  // The object, null if the handle is not valid.
  void* find(HandleType type, uint64_t handle) const noexcept {
    const Slot* slot = slot_of(handle);
    if (slot == nullptr || slot->handle.load(std::memory_order_acquire) != handle ||
        static_cast<uint8_t>(handle) != static_cast<uint8_t>(type)) {
      return nullptr;
    }
    return slot->object;
  }

  // In a forked child nothing of the parent's may be used: from here on none of its handles is valid.
  void forget_after_fork() noexcept;
  // Whether the handle may be one of the parent's: this process is a forked child, and has not given it out itself.
  bool from_before_fork(uint64_t handle) const noexcept;
  std::mutex& mutex() noexcept { return mutex_; }

  // The table of this library. Never destroyed, so that exit with live objects is safe.
  static HandleTable& instance() noexcept;

 private:
  struct Slot {
    std::atomic<uint64_t> handle{0};
    void* object = nullptr;
    std::atomic<uint32_t> generation{0};  // written by one thread at a time, read by any

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

// Storage that is never destroyed, and lies at a constant address.
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

// Throws what a bad handle deserves: null, stale or foreign, or opened before fork.
[[noreturn]] void bad_handle(HandleType type, const void* handle, const char* function);

// The object behind a handle of the host API; throws INVALID_ARGUMENT naming `function` for one that is null, released
// or foreign.
template <class T>
T& require(const void* handle, const char* function) {
  T* object = find_handle<T>(handle);
  if (object == nullptr) [[unlikely]]
    bad_handle(T::kHandleType, handle, function);
  return *object;
}

}  // namespace backplane::core
