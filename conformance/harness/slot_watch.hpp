// SPDX-License-Identifier: Apache-2.0
// Tracks the slot that a case has called. This names the slot that changed the thread's state, the
// last steps of a failed case and, for the supervisor, the slot that does not return.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "thread_state.hpp"

namespace backplane::conformance {

// Slots that may be slow or may change the thread's state. Their numbers pass through memory that a
// plugin could overwrite.
enum class Slot : uint32_t {
  none,
  library,
  query,
  shutdown,
  device_open,
  device_close,
  buffer_create,
  copy,
  copy_in,
  copy_out,
  stream_create,
  stream_wait,
  stream_wait_event,
  event_create,
  event_record,
  event_wait,
  plan_create,
  plan_execute,
};
std::string_view name_of(Slot slot);  // the ABI's name; empty for none and for an invalid number

// The current call of a worker, in memory shared with its supervisor.
class SlotPage {
 public:
  Slot enter(Slot slot) noexcept;  // returns the previous slot
  // differs for each call
  uint64_t call() const noexcept { return call_.load(std::memory_order_relaxed); }
  static Slot slot_of(uint64_t call) noexcept { return static_cast<Slot>(call & 0xff); }

 private:
  std::atomic<uint64_t> call_{0};  // the slot in the low byte, a call counter in the others
};

// Sets the page that receives the slots of the calling thread; null: none.
void report_slots_to(SlotPage* page) noexcept;

// Gives an object its number in the steps of the case that created it.
void count_stream(const void* stream) noexcept;
void count_event(const void* event) noexcept;

// Marks a scope in which the calling thread is in the slot.
class InSlot {
 public:
  explicit InSlot(Slot slot, const void* stream = nullptr, const void* event = nullptr) noexcept;
  InSlot(const InSlot&) = delete;
  InSlot& operator=(const InSlot&) = delete;
  ~InSlot();

 private:
  Slot slot_;
  Slot outer_ = Slot::none;
};

// Watches one case on the thread that runs it; slots on other threads are not watched. It allocates
// nothing, since cases count the plugin's allocations.
class SlotWatch {
 public:
  explicit SlotWatch(const ThreadState& before);
  SlotWatch(const SlotWatch&) = delete;
  SlotWatch& operator=(const SlotWatch&) = delete;
  ~SlotWatch();
  Slot changer() const { return changer_; }  // the slot after which the thread first differed from `before`
  // The latest calls with a stream or an event, as "; step 7: copy on stream 1, event_record of
  // event 1 on stream 1". Numbers count the objects that the case created. Empty: no calls.
  std::string steps() const;

 private:
  friend class InSlot;
  friend void count_stream(const void* stream) noexcept;
  friend void count_event(const void* event) noexcept;
  // The latest objects by number.
  struct Numbers {
    void add(const void* object) { made[count++ % made.size()] = object; }
    uint64_t of(const void* object) const;  // 0: not created by the case
    std::array<const void*, 64> made{};
    uint64_t count = 0;
  };
  struct Step {
    Slot slot = Slot::none;
    bool on_stream = false, of_event = false;
    uint64_t stream = 0, event = 0;
  };
  void look_after(Slot slot);
  void note(Slot slot, const void* stream, const void* event);

  const ThreadState& before_;
  Slot changer_ = Slot::none;
  int looks_ = 0;
  Numbers streams_{}, events_{};
  std::array<Step, 6> latest_{};
  uint64_t count_ = 0;
};

}  // namespace backplane::conformance
