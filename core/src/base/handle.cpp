// SPDX-License-Identifier: Apache-2.0
// Implements the handle table.
#include "base/handle.hpp"

#include <sys/auxv.h>

#include <chrono>
#include <cstring>

namespace backplane::core {

namespace {
// The finaliser of splitmix64: every input bit affects every bit of the result.
uint64_t mixed(uint64_t value) noexcept {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ value >> 27) * 0x94d049bb133111ebull;
  return value ^ value >> 31;
}

uint64_t process_random() noexcept {
  uint64_t bits = 0;
  const auto* bytes = reinterpret_cast<const void*>(getauxval(AT_RANDOM));
  if (bytes != nullptr) std::memcpy(&bits, bytes, sizeof(bits));
  return bits;
}

// Returns the generation with which all slots start. The number differs between processes and
// between copies of this library, so that a handle is invalid in every process and every copy that
// did not create it.
uint32_t fresh_salt(const void* table) noexcept {
  const auto now = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  return static_cast<uint32_t>(mixed(process_random() ^ mixed(reinterpret_cast<uint64_t>(table) ^ mixed(now)))) | 1;
}
}  // namespace

constinit HandleTableStorage handle_table_storage;

const char* handle_type_name(HandleType type) noexcept {
  switch (type) {
    case HandleType::registry:
      return "registry";
    case HandleType::plugin:
      return "plugin";
    case HandleType::device:
      return "device";
    case HandleType::stream:
      return "stream";
    case HandleType::event:
      return "event";
    case HandleType::buffer:
      return "buffer";
    case HandleType::graph:
      return "graph";
    case HandleType::semaphore:
      return "semaphore";
  }
  return "object";
}

uint64_t HandleTable::insert(HandleType type, void* object) {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    if (used_ == 1u << kIndexBits) {
      throw Error(BP_OUT_OF_MEMORY, "backplane: all {} handles are in use; release some", 1u << kIndexBits);
    }
    const uint32_t chunk = used_ >> kChunkBits;
    if (chunks_[chunk].load(std::memory_order_relaxed) == nullptr) {
      if (salt_ == 0) salt_ = fresh_salt(this);
      Slot* slots = new Slot[1u << kChunkBits];
      for (uint32_t i = 0; i < 1u << kChunkBits; ++i) slots[i].generation.store(salt_, std::memory_order_relaxed);
      chunks_[chunk].store(slots, std::memory_order_release);
    }
    // Reserves room for every slot, so that `remove` need not allocate.
    free_.reserve(static_cast<size_t>(chunk + 1) << kChunkBits);
    free_.push_back(used_++);
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  Slot& slot = chunks_[index >> kChunkBits].load(std::memory_order_relaxed)[index & ((1u << kChunkBits) - 1)];
  slot.object = object;
  const uint64_t handle = static_cast<uint64_t>(slot.next_generation()) << 32 | static_cast<uint64_t>(index) << 8 |
                          static_cast<uint8_t>(type);
  slot.handle.store(handle, std::memory_order_release);
  return handle;
}

void* HandleTable::remove(HandleType type, uint64_t handle) noexcept {
  Slot* slot = slot_of(handle);
  if (slot == nullptr || static_cast<uint8_t>(handle) != static_cast<uint8_t>(type)) return nullptr;
  uint64_t expected = handle;
  if (!slot->handle.compare_exchange_strong(expected, 0, std::memory_order_acq_rel)) return nullptr;
  void* object = slot->object;
  drop(handle);
  return object;
}

void HandleTable::drop(uint64_t invalidated) noexcept {
  const std::lock_guard lock(mutex_);
  free_.push_back(static_cast<uint32_t>(invalidated >> 8) & ((1u << kIndexBits) - 1));
}

void HandleTable::forget_after_fork() noexcept {
  for (auto& chunk : chunks_) chunk.store(nullptr, std::memory_order_relaxed);
  free_.clear();
  used_ = 0;
  salt_ = static_cast<uint32_t>(mixed(salt_ + 1ull));
  forked_.store(true, std::memory_order_relaxed);
}

bool HandleTable::from_before_fork(uint64_t handle) const noexcept {
  if (!forked_.load(std::memory_order_relaxed)) return false;
  const Slot* slot = slot_of(handle);
  if (slot == nullptr) return true;
  // A forked child has its own salt_. In the child, this slot has issued the generations from salt_
  // + 1 to the slot's current generation.
  const uint32_t given_out = slot->generation.load(std::memory_order_relaxed) - salt_;
  return static_cast<uint32_t>(handle >> 32) - salt_ - 1 >= given_out;
}

void bad_handle(HandleType type, const void* handle, const char* function) {
  const char* noun = handle_type_name(type);
  if (handle == nullptr) throw Error(BP_INVALID_ARGUMENT, "{}: the {} is null; pass a live one", function, noun);
  if (HandleTable::instance().from_before_fork(reinterpret_cast<uint64_t>(handle))) {
    throw Error(BP_UNAVAILABLE, "{}: {} {} was opened before fork(); a child opens its own registry and devices",
                function, noun, handle);
  }
  throw Error(BP_INVALID_ARGUMENT, "{}: {} is not a live {}: it was released, or is something else", function, handle,
              noun);
}

}  // namespace backplane::core
