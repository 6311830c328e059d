// SPDX-License-Identifier: Apache-2.0
// Tracks the slots that a case calls. Failure messages name the slot that changed the thread's
// state, and list the last steps of the case. The supervisor names a slot that does not return.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "thread_state.hpp"

namespace backplane::conformance {

// Slots that may be slow or may change the thread's state. The current slot is stored in memory
// that the plugin could overwrite, so a value of this type may be invalid.
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
// Returns the ABI's name of the slot, or an empty string for `none` and for an invalid value.
std::string_view name_of(Slot slot);

// The slot call that a worker is currently making, in memory that the worker shares with its
// supervisor.
class SlotPage {
 public:
  Slot enter(Slot slot) noexcept;  // returns the previous slot
  // Returns a value that changes with each call of a slot. slot_of returns the slot that the value contains.
  uint64_t call() const noexcept { return call_.load(std::memory_order_relaxed); }
  static Slot slot_of(uint64_t call) noexcept { return static_cast<Slot>(call & 0xff); }

 private:
  std::atomic<uint64_t> call_{0};  // call counter in the high 56 bits, slot in the low 8 bits
};

// Sets the page that receives the slots of the calling thread. Null disables reporting.
void report_slots_to(SlotPage* page) noexcept;

// Both functions assign the next number to a new stream or event of the case. SlotWatch::steps()
// prints these numbers.
void count_stream(const void* stream) noexcept;
void count_event(const void* event) noexcept;

// Marks a scope in which the calling thread executes one slot.
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

// Watches the slot calls of one case on the thread that runs the case. A SlotWatch allocates
// nothing, since cases count the plugin's allocations.
class SlotWatch {
 public:
  explicit SlotWatch(const ThreadState& before);
  SlotWatch(const SlotWatch&) = delete;
  SlotWatch& operator=(const SlotWatch&) = delete;
  ~SlotWatch();
  // Returns the slot after which the thread's state first differed from the state that the
  // constructor received.
  Slot changer() const { return changer_; }
  // Returns the latest calls with a stream or an event, such as "; step 7: copy on stream 1,
  // event_record of event 1 on stream 1". Streams and events are numbered in the order in which the
  // case created them. Returns an empty string if there were no such calls.
  std::string steps() const;

 private:
  friend class InSlot;
  friend void count_stream(const void* stream) noexcept;
  friend void count_event(const void* event) noexcept;
  // The latest streams or events, and their numbers.
  struct Numbers {
    void add(const void* object) { made[count++ % made.size()] = object; }
    uint64_t of(const void* object) const;  // returns 0 if the case did not create the object
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
