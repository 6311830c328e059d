// SPDX-License-Identifier: Apache-2.0
#include "slot_watch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reason.hpp"

namespace backplane::conformance {

namespace {

// Maximum number of checks of the thread's state per case. Each check is slow, because it reads all
// signal handlers.
constexpr int kMostLooks = 64;

thread_local SlotWatch* watch = nullptr;
thread_local SlotPage* page = nullptr;

std::string object_text(std::string_view kind, uint64_t number) {
  return number == 0 ? fmt::format("a {} of the suite", kind) : fmt::format("{} {}", kind, number);
}

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
                                        "stream_wait_event",
                                        "event_create",
                                        "event_record",
                                        "event_wait",
                                        "plan_create",
                                        "plan_execute"};
  const auto number = static_cast<size_t>(slot);
  return number < std::size(names) ? names[number] : std::string_view();
}

Slot SlotPage::enter(Slot slot) noexcept {
  const uint64_t before = call();
  call_.store(((before >> 8) + 1) << 8 | static_cast<uint64_t>(slot), std::memory_order_relaxed);
  return slot_of(before);
}

void report_slots_to(SlotPage* where) noexcept { page = where; }

uint64_t SlotWatch::Numbers::of(const void* object) const {
  // Searches backwards from the latest object, since a new object may reuse the address of an
  // earlier object.
  const uint64_t oldest = count - std::min<uint64_t>(count, made.size());
  for (uint64_t number = count; number > oldest; --number) {
    if (made[(number - 1) % made.size()] == object) return number;
  }
  return 0;
}

SlotWatch::SlotWatch(const ThreadState& before) : before_(before) { watch = this; }

SlotWatch::~SlotWatch() { watch = nullptr; }

void SlotWatch::look_after(Slot slot) {
  if (changer_ == Slot::none && looks_++ < kMostLooks && !before_.changed_since().empty()) changer_ = slot;
}

void SlotWatch::note(Slot slot, const void* stream, const void* event) {
  if (stream == nullptr && event == nullptr) return;
  latest_[count_++ % latest_.size()] = {slot, stream != nullptr, event != nullptr,
                                        stream == nullptr ? 0 : streams_.of(stream),
                                        event == nullptr ? 0 : events_.of(event)};
}

std::string SlotWatch::steps() const {
  if (count_ == 0) return "";
  std::string text;
  for (uint64_t step = count_ - std::min<uint64_t>(count_, latest_.size()); step < count_; ++step) {
    const Step& each = latest_[step % latest_.size()];
    text += fmt::format("{}{}{}{}", text.empty() ? fmt::format("{}{}: ", kStepsMark, count_) : ", ", name_of(each.slot),
                        each.of_event ? " of " + object_text("event", each.event) : "",
                        each.on_stream ? " on " + object_text("stream", each.stream) : "");
  }
  return text;
}

InSlot::InSlot(Slot slot, const void* stream, const void* event) noexcept : slot_(slot) {
  if (page != nullptr) outer_ = page->enter(slot);
  if (watch != nullptr) watch->note(slot, stream, event);
}

void count_stream(const void* stream) noexcept {
  if (watch != nullptr) watch->streams_.add(stream);
}

void count_event(const void* event) noexcept {
  if (watch != nullptr) watch->events_.add(event);
}

InSlot::~InSlot() {
  if (page != nullptr) page->enter(outer_);
  if (watch != nullptr) watch->look_after(slot_);
}

}  // namespace backplane::conformance
