// SPDX-License-Identifier: Apache-2.0
#include "slot_watch.hpp"

namespace bp::conformance {

namespace {

constexpr int most_looks = 64;  // a case: each asks for every signal's handler

thread_local SlotWatch* watch = nullptr;
std::atomic<uint32_t>* told = nullptr;

}  // namespace

std::string_view name_of(Slot slot) {
  constexpr std::string_view names[] = {"",
                                        "dlopen",
                                        "bp_plugin_query",
                                        "shutdown",
                                        "device_open",
                                        "close",
                                        "buffer_create",
                                        "copy",
                                        "copy_in",
                                        "copy_out",
                                        "stream_create",
                                        "stream_wait",
                                        "event_create",
                                        "event_wait",
                                        "plan_create",
                                        "plan_execute"};
  const auto number = static_cast<size_t>(slot);
  return number < std::size(names) ? names[number] : std::string_view();
}

void tell_slots_to(std::atomic<uint32_t>* page) { told = page; }

SlotWatch::SlotWatch(const ThreadState& before) : before_(before) { watch = this; }

SlotWatch::~SlotWatch() { watch = nullptr; }

void SlotWatch::look_after(Slot slot) {
  if (changer_ == Slot::none && looks_++ < most_looks && !before_.changed_since().empty()) changer_ = slot;
}

InSlot::InSlot(Slot slot) noexcept {
  if (watch == nullptr) return;
  slot_ = slot;
  if (told != nullptr)
    outer_ = static_cast<Slot>(told->exchange(static_cast<uint32_t>(slot), std::memory_order_relaxed));
}

InSlot::~InSlot() {
  if (slot_ == Slot::none || watch == nullptr) return;
  if (told != nullptr) told->store(static_cast<uint32_t>(outer_), std::memory_order_relaxed);
  watch->look_after(slot_);
}

}  // namespace bp::conformance
