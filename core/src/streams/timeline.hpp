// SPDX-License-Identifier: Apache-2.0
// The progress of a stream: how much was enqueued, how much is known to have ended, and the events
// ("markers") that show it. A timeline outlives its stream, so that memory can wait for it.
//
// Only the stream's owner may record a marker. Another thread that needs to know when the current
// work ends sets `marker_requested`; the owner's next call records the marker, and from then on any
// thread may poll it.
#pragma once

#include <backplane/backplane.h>

#include <atomic>
#include <cstdint>

#include "base/ref.hpp"
#include "base/spin_lock.hpp"

namespace backplane::core {

class Device;

class Timeline final : public Object {
 public:
  // On a synchronous device nothing is ever pending. On an `external` stream, others enqueue work
  // that is not counted.
  Timeline(bool synchronous, bool external) noexcept
      : step_(synchronous ? 0 : 1), unseen_(external && !synchronous ? 1 : 0) {}

  // The stream's owner calls this after every enqueue. An enqueue that failed the stream counts
  // too: a part may have been submitted, and only stream_wait reports when memory is free.
  void count_enqueue(bp_status status) noexcept {
    if (status == BP_OK || status == BP_EXECUTION_FAILED) count_enqueue();
  }
  void count_enqueue() noexcept {
    enqueued_.store(enqueued_.load(std::memory_order_relaxed) + step_, std::memory_order_release);
  }
  uint64_t enqueued() const noexcept { return enqueued_.load(std::memory_order_acquire); }
  // The point that passes when all work that is enqueued now has ended. On an external stream,
  // uncounted work may follow the last marker, so only a later marker counts.
  uint64_t point() const noexcept { return enqueued() + unseen_; }
  bool passed(uint64_t point) const noexcept { return completed_.load(std::memory_order_acquire) >= point; }
  bool idle() const noexcept { return passed(point()); }
  // The point that a wait for the whole stream completes. The stream's owner calls this before the
  // wait.
  uint64_t point_of_wait() noexcept {
    if (unseen_ != 0) count_enqueue();
    return enqueued();
  }
  // All enqueues up to `point` are known to have ended.
  void complete(uint64_t point) noexcept;

  void request_marker() noexcept { marker_requested_.store(true, std::memory_order_relaxed); }
  bool marker_requested() const noexcept { return marker_requested_.load(std::memory_order_relaxed); }
  // Records a marker after all enqueued work; for the stream's owner. On failure the marker stays
  // requested. If there are too many markers, this one is recorded after another has passed.
  void record_marker(const Device& device, bp_stream* stream) noexcept;
  // Polls the markers, from any thread; true if the timeline advanced.
  bool poll(const Device& device) noexcept;
  // Destroys the markers. Call when the stream has ended or is no longer polled.
  void destroy_markers(const Device& device) noexcept;

 private:
  static constexpr uint32_t kCapacity = 4;
  struct Marker {
    bp_event* event;
    uint64_t point;
  };
  void insert(Marker marker) noexcept;  // keeps the order by point; the caller holds the lock
  bool take_first(Marker* marker) noexcept;

  std::atomic<uint64_t> enqueued_{0};
  const uint64_t step_, unseen_;
  std::atomic<bool> marker_requested_{false};
  alignas(64) std::atomic<uint64_t> completed_{0};
  SpinLock lock_;
  Marker markers_[kCapacity];   // recorded markers, oldest first
  bp_event* spare_[kCapacity];  // events of passed markers, for reuse
  uint32_t marker_count_ = 0, spare_count_ = 0;
  uint32_t outstanding_ = 0;  // markers that are recorded or being polled
  bool missed_ = false;       // a request was dropped because there were too many markers
  bool dropped_ = false;
};

}  // namespace backplane::core
