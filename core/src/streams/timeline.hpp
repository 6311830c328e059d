// SPDX-License-Identifier: Apache-2.0
// How far a stream has come: counts of what was enqueued and of what is known to have ended, and the events ("markers")
// that tell. It outlives its stream, so that memory can wait for it.
//
// Only the stream's owner may record a marker. Another thread that needs to know when the stream passes what it holds now
// sets `marker_requested`, and the owner's next call records it; from then on anyone may poll.
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
  // On a synchronous device nothing is ever pending. On an `external` stream others enqueue uncounted work.
  Timeline(bool synchronous, bool external) noexcept
      : step_(synchronous ? 0 : 1), unseen_(external && !synchronous ? 1 : 0) {}

  // After every enqueue, by the stream's owner. One that failed the stream counts too: a part of it may have been submitted, and
  // only the stream's wait tells when memory is free.
  void count_enqueue(bp_status status) noexcept {
    if (status == BP_OK || status == BP_EXECUTION_FAILED) count_enqueue();
  }
  void count_enqueue() noexcept {
    enqueued_.store(enqueued_.load(std::memory_order_relaxed) + step_, std::memory_order_release);
  }
  uint64_t enqueued() const noexcept { return enqueued_.load(std::memory_order_acquire); }
  // The point that must pass before all work that was enqueued until now has ended. On an external stream, work that is
  // not counted may stand behind the last marker, so only a later marker counts.
  uint64_t point() const noexcept { return enqueued() + unseen_; }
  bool passed(uint64_t point) const noexcept { return completed_.load(std::memory_order_acquire) >= point; }
  bool idle() const noexcept { return passed(point()); }
  // By the stream's owner, before a wait for the whole stream: the point that the wait completes.
  uint64_t point_of_wait() noexcept {
    if (unseen_ != 0) count_enqueue();
    return enqueued();
  }
  // All enqueues up to `point` are known to have ended.
  void complete(uint64_t point) noexcept;

  void request_marker() noexcept { marker_requested_.store(true, std::memory_order_relaxed); }
  bool marker_requested() const noexcept { return marker_requested_.load(std::memory_order_relaxed); }
  // By the stream's owner: records a marker behind all that is enqueued. If that fails, the marker stays wanted: of too many, until one
  // has passed.
  void record_marker(const Device& device, bp_stream* stream) noexcept;
  // Asks the markers, from any thread; true if the timeline moved.
  bool poll(const Device& device) noexcept;
  // Destroys the markers: the stream has ended, or never will be asked again.
  void destroy_markers(const Device& device) noexcept;

 private:
  static constexpr uint32_t kCapacity = 4;
  struct Marker {
    bp_event* event;
    uint64_t point;
  };
  void insert(Marker marker) noexcept;  // by point; locked by the caller
  bool take_first(Marker* marker) noexcept;

  std::atomic<uint64_t> enqueued_{0};
  const uint64_t step_, unseen_;
  std::atomic<bool> marker_requested_{false};
  alignas(64) std::atomic<uint64_t> completed_{0};
  SpinLock lock_;
  Marker markers_[kCapacity];       // recorded, oldest first
  bp_event* spare_[kCapacity];  // passed, to be recorded again
  uint32_t marker_count_ = 0, spare_count_ = 0;
  uint32_t outstanding_ = 0;  // markers recorded or being asked
  bool missed_ = false;       // one more was wanted than there may be
  bool dropped_ = false;
};

}  // namespace backplane::core
