// SPDX-License-Identifier: Apache-2.0
// The progress of a stream: the number of enqueued operations, the number known to have completed,
// and the events ("markers") that show the progress. A timeline outlives its stream, so that memory
// can wait for the stream's work.
//
// Only the stream's owner, the thread that executes a call on the stream, may record a marker. Another thread that
// needs to know when the current work completes sets `marker_requested`. The owner's next call then records the marker,
// and after that any thread may poll it.
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
  // On a synchronous device no work is ever pending. On an `external` stream, code outside this
  // library enqueues work that is not counted.
  Timeline(bool synchronous, bool external) noexcept
      : step_(synchronous ? 0 : 1), unseen_(external && !synchronous ? 1 : 0) {}

  // The stream's owner calls this function for every enqueue call. A call that put the stream into
  // the failed state is counted too, because the plugin may have submitted a part of the work.
  void count_enqueue(bp_status status) noexcept {
    if (status == BP_OK || status == BP_EXECUTION_FAILED) count_enqueue();
  }
  void count_enqueue() noexcept {
    enqueued_.store(enqueued_.load(std::memory_order_relaxed) + step_, std::memory_order_release);
  }
  uint64_t enqueued() const noexcept { return enqueued_.load(std::memory_order_acquire); }
  // The point that completes when all work enqueued so far has completed. On an external stream,
  // uncounted work may follow the last marker, so only a later marker proves that the work has
  // completed.
  uint64_t point() const noexcept { return enqueued() + unseen_; }
  bool passed(uint64_t point) const noexcept { return completed_.load(std::memory_order_acquire) >= point; }
  bool idle() const noexcept { return passed(point()); }
  // Returns the point that has completed once a wait for the whole stream returns. The stream's
  // owner calls this function before the wait.
  uint64_t point_of_wait() noexcept {
    if (unseen_ != 0) count_enqueue();
    return enqueued();
  }
  // Records that all work up to `point` has completed.
  void complete(uint64_t point) noexcept;

  void request_marker() noexcept { marker_requested_.store(true, std::memory_order_relaxed); }
  bool marker_requested() const noexcept { return marker_requested_.load(std::memory_order_relaxed); }
  // Records a marker after all enqueued work. Only the stream's owner may call this function. After
  // a failure the marker remains requested. If there are kCapacity markers already, the new marker
  // is recorded only after an earlier marker has completed.
  void record_marker(const Device& device, bp_stream* stream) noexcept;
  // Polls the markers. Any thread may call this function. Returns true if the timeline advanced.
  bool poll(const Device& device) noexcept;
  // Destroys the markers. Call this function when the stream is destroyed or is no longer polled.
  void destroy_markers(const Device& device) noexcept;
  // Returns whether the stream has ended, so that no work follows.
  bool ended() const noexcept;

 private:
  static constexpr uint32_t kCapacity = 4;
  struct Marker {
    bp_event* event;
    uint64_t point;
  };
  // Inserts `marker`, and keeps the markers in ascending order of their points. The caller holds
  // the lock.
  void insert(Marker marker) noexcept;
  bool take_first(Marker* marker) noexcept;

  std::atomic<uint64_t> enqueued_{0};
  const uint64_t step_, unseen_;
  std::atomic<bool> marker_requested_{false};
  alignas(64) std::atomic<uint64_t> completed_{0};
  mutable SpinLock lock_;
  Marker markers_[kCapacity];   // recorded markers, oldest first
  bp_event* spare_[kCapacity];  // events of completed markers, for reuse
  uint32_t marker_count_ = 0, spare_count_ = 0;
  uint32_t outstanding_ = 0;  // markers that are recorded or being polled
  bool missed_ = false;       // a request was dropped because there were too many markers
  bool dropped_ = false;
};

}  // namespace backplane::core
