// SPDX-License-Identifier: Apache-2.0
// Records, polls and recycles markers. A marker is removed from the timeline before a plugin call
// uses it, so no lock is needed during the call.
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

void Timeline::insert(Marker marker) noexcept {
  uint32_t at = marker_count_++;
  for (; at > 0 && markers_[at - 1].point > marker.point; --at) markers_[at] = markers_[at - 1];
  markers_[at] = marker;
}

bool Timeline::take_first(Marker* marker) noexcept {
  const std::lock_guard lock(lock_);
  if (marker_count_ == 0) return false;
  *marker = markers_[0];
  --marker_count_;
  for (uint32_t i = 0; i < marker_count_; ++i) markers_[i] = markers_[i + 1];
  return true;
}

void Timeline::record_marker(const Device& device, bp_stream* stream) noexcept {
  marker_requested_.store(false, std::memory_order_relaxed);
  if (idle()) return;
  poll(device);
  bp_event* event = nullptr;
  {
    const std::lock_guard lock(lock_);
    if (outstanding_ == kCapacity) {
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
    return request_marker();
  }
  const bp_status status = device.api->event_record(device.handle, event, stream, &error);
  count_enqueue(status);
  const std::lock_guard lock(lock_);
  if (status == BP_OK) {
    insert({event, enqueued()});
    return;
  }
  --outstanding_;
  spare_[spare_count_++] = event;
  request_marker();
}

bool Timeline::poll(const Device& device) noexcept {
  bool moved = false;
  for (Marker marker; take_first(&marker);) {
    bp_error error = fresh_error();
    const bp_status status = device.api->event_wait(device.handle, marker.event, 0, &error);
    // A failure means that the stream did not reach the event. The stream's work may still access
    // memory until the stream ends.
    if (status == BP_OK) complete(marker.point);
    bp_event* unwanted = nullptr;
    {
      const std::lock_guard lock(lock_);
      if (status == BP_TIMEOUT && !dropped_) {
        insert(marker);
      } else {
        --outstanding_;
        if (std::exchange(missed_, false)) request_marker();
        if (dropped_) {
          unwanted = marker.event;
        } else {
          spare_[spare_count_++] = marker.event;
        }
      }
    }
    if (unwanted != nullptr) device.api->event_destroy(device.handle, unwanted);
    if (status == BP_TIMEOUT) break;
    moved = moved || status == BP_OK;
  }
  return moved;
}

bool Timeline::ended() const noexcept {
  const std::lock_guard lock(lock_);
  return dropped_;
}

void Timeline::destroy_markers(const Device& device) noexcept {
  bp_event* events[2 * kCapacity];
  uint32_t count = 0;
  {
    const std::lock_guard lock(lock_);
    dropped_ = true;
    for (; marker_count_ != 0; --outstanding_) events[count++] = markers_[--marker_count_].event;
    while (spare_count_ != 0) events[count++] = spare_[--spare_count_];
  }
  for (uint32_t i = 0; i < count; ++i) device.api->event_destroy(device.handle, events[i]);
}

}  // namespace backplane::core
