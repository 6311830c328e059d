// SPDX-License-Identifier: Apache-2.0
// Marks: recording, asking, recycling. Events are taken out of the timeline while the plugin is asked, so that no lock
// is held then.
#include "streams/timeline.hpp"

#include <mutex>
#include <utility>

#include "base/error.hpp"
#include "loading/device.hpp"

namespace backplane::core {

void Timeline::complete(uint64_t point) noexcept {
  uint64_t known = completed_.load(std::memory_order_relaxed);
  while (known < point &&
         !completed_.compare_exchange_weak(known, point, std::memory_order_acq_rel, std::memory_order_relaxed)) {
  }
}

void Timeline::insert(Mark mark) noexcept {
  uint32_t at = mark_count_++;
  for (; at > 0 && marks_[at - 1].point > mark.point; --at) marks_[at] = marks_[at - 1];
  marks_[at] = mark;
}

bool Timeline::take_first(Mark* mark) noexcept {
  const std::lock_guard lock(lock_);
  if (mark_count_ == 0) return false;
  *mark = marks_[0];
  --mark_count_;
  for (uint32_t i = 0; i < mark_count_; ++i) marks_[i] = marks_[i + 1];
  return true;
}

void Timeline::record_mark(const Device& device, bp_stream* stream) noexcept {
  mark_wanted_.store(false, std::memory_order_relaxed);
  if (idle()) return;
  poll(device);
  bp_event* event = nullptr;
  {
    const std::lock_guard lock(lock_);
    if (outstanding_ == capacity) {
      missed_ = true;
      return;
    }
    ++outstanding_;
    if (spare_count_ != 0) event = spare_[--spare_count_];
  }
  bp_error error = fresh_error();
  if (event == nullptr && (device.api->event_create(device.handle, 0, &event, &error) != BP_OK || event == nullptr)) {
    const std::lock_guard lock(lock_);
    --outstanding_;
    return want_mark();
  }
  const bp_status status = device.api->event_record(device.handle, event, stream, &error);
  answered(status);
  const std::lock_guard lock(lock_);
  if (status == BP_OK) {
    insert({event, enqueued()});
    return;
  }
  --outstanding_;
  spare_[spare_count_++] = event;
  want_mark();
}

bool Timeline::poll(const Device& device) noexcept {
  bool moved = false;
  for (Mark mark; take_first(&mark);) {
    bp_error error = fresh_error();
    const bp_status status = device.api->event_wait(device.handle, mark.event, 0, &error);
    // A failure says that the stream did not get here, not that its work left memory alone: only the stream's end
    // tells.
    if (status == BP_OK) complete(mark.point);
    bp_event* unwanted = nullptr;
    {
      const std::lock_guard lock(lock_);
      if (status == BP_TIMEOUT && !dropped_) {
        insert(mark);
      } else {
        --outstanding_;
        if (std::exchange(missed_, false)) want_mark();
        if (dropped_) {
          unwanted = mark.event;
        } else {
          spare_[spare_count_++] = mark.event;
        }
      }
    }
    if (unwanted != nullptr) device.api->event_destroy(device.handle, unwanted);
    if (status == BP_TIMEOUT) break;
    moved = moved || status == BP_OK;
  }
  return moved;
}

void Timeline::drop_marks(const Device& device) noexcept {
  bp_event* events[2 * capacity];
  uint32_t count = 0;
  {
    const std::lock_guard lock(lock_);
    dropped_ = true;
    for (; mark_count_ != 0; --outstanding_) events[count++] = marks_[--mark_count_].event;
    while (spare_count_ != 0) events[count++] = spare_[--spare_count_];
  }
  for (uint32_t i = 0; i < count; ++i) device.api->event_destroy(device.handle, events[i]);
}

}  // namespace backplane::core
