// SPDX-License-Identifier: Apache-2.0
// How far a stream has come: counts of what was enqueued and of what is known to have ended, and the events ("marks")
// that tell. It outlives its stream, so that memory can wait for it.
//
// Only the stream's owner may record a mark. Another thread that needs to know when the stream passes what it holds now
// sets `mark_wanted`, and the owner's next call records it; from then on anyone may poll.
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
  void answered(bp_status status) noexcept {
    if (status == BP_OK || status == BP_EXECUTION_FAILED) enqueued_one();
  }
  void enqueued_one() noexcept {
    enqueued_.store(enqueued_.load(std::memory_order_relaxed) + step_, std::memory_order_release);
  }
  uint64_t enqueued() const noexcept { return enqueued_.load(std::memory_order_acquire); }
  // The point that must pass before all work that was enqueued until now has ended. On an external stream, work that is
  // not counted may stand behind the last mark, so only a later mark counts.
  uint64_t point() const noexcept { return enqueued() + unseen_; }
  bool passed(uint64_t point) const noexcept { return completed_.load(std::memory_order_acquire) >= point; }
  bool idle() const noexcept { return passed(point()); }
  // By the stream's owner, before a wait for the whole stream: the point that the wait completes.
  uint64_t point_of_wait() noexcept {
    if (unseen_ != 0) enqueued_one();
    return enqueued();
  }
  // All enqueues up to `point` are known to have ended.
  void complete(uint64_t point) noexcept;

  void want_mark() noexcept { mark_wanted_.store(true, std::memory_order_relaxed); }
  bool mark_wanted() const noexcept { return mark_wanted_.load(std::memory_order_relaxed); }
  // By the stream's owner: records a mark behind all that is enqueued. If that fails, the mark stays wanted: of too many, until one
  // has passed.
  void record_mark(const Device& device, bp_stream* stream) noexcept;
  // Asks the marks, from any thread; true if the timeline moved.
  bool poll(const Device& device) noexcept;
  // Destroys the marks: the stream has ended, or never will be asked again.
  void drop_marks(const Device& device) noexcept;

 private:
  static constexpr uint32_t capacity = 4;
  struct Mark {
    bp_event* event;
    uint64_t point;
  };
  void insert(Mark mark) noexcept;  // by point; locked by the caller
  bool take_first(Mark* mark) noexcept;

  std::atomic<uint64_t> enqueued_{0};
  const uint64_t step_, unseen_;
  std::atomic<bool> mark_wanted_{false};
  alignas(64) std::atomic<uint64_t> completed_{0};
  SpinLock lock_;
  Mark marks_[capacity];       // recorded, oldest first
  bp_event* spare_[capacity];  // passed, to be recorded again
  uint32_t mark_count_ = 0, spare_count_ = 0;
  uint32_t outstanding_ = 0;  // marks recorded or being asked
  bool missed_ = false;       // one more was wanted than there may be
  bool dropped_ = false;
};

}  // namespace backplane::core
