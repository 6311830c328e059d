// SPDX-License-Identifier: Apache-2.0
// Which slot of the plugin a case is in: for the supervisor of a silent worker, and to name the slot that changed the thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "thread_state.hpp"

namespace bp::conformance {

// Calls that may be slow or change the thread. The numbers go through memory that a plugin could overwrite.
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
  event_create,
  event_wait,
  plan_create,
  plan_execute,
};
std::string_view name_of(Slot slot);  // as the ABI names it; empty for none and for no number of a slot

// While it lives, the thread of the case is in the slot.
class InSlot {
 public:
  explicit InSlot(Slot slot) noexcept;
  InSlot(const InSlot&) = delete;
  InSlot& operator=(const InSlot&) = delete;
  ~InSlot();

 private:
  Slot slot_ = Slot::none;
  Slot outer_ = Slot::none;
};

// Of the process's one case at a time, on the thread that makes it: the others' slots are not watched.
class SlotWatch {
 public:
  explicit SlotWatch(const ThreadState& before);
  SlotWatch(const SlotWatch&) = delete;
  SlotWatch& operator=(const SlotWatch&) = delete;
  ~SlotWatch();
  Slot changer() const { return changer_; }  // after it the thread first differed from `before`

 private:
  friend class InSlot;
  void look_after(Slot slot);

  const ThreadState& before_;
  Slot changer_ = Slot::none;
  int looks_ = 0;
};

// Where the slot in progress is told; null: nowhere. A supervisor shares the page with its worker.
void tell_slots_to(std::atomic<uint32_t>* page);

}  // namespace bp::conformance
