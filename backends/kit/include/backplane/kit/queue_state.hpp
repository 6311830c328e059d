// SPDX-License-Identifier: Apache-2.0
// The part of a queue stream's state that its events and waiting streams share: the stream's
// progress and its first failure. queue_device.hpp documents the native device.
#pragma once

#include <backplane/kit/timeline.hpp>
#include <memory>
#include <vector>

namespace backplane::kit {

// Polls a mark until the device reaches it or the timeout ends. Returns OK, TIMEOUT, or the failure of earlier work.
template <class Native>
Status poll_mark(Native& native, const typename Native::Mark& mark, uint64_t timeout_ns) {
  Status status = native.poll(mark);
  const auto ended = [&] {
    status = native.poll(mark);
    return status.code() != BP_TIMEOUT;
  };
  const Deadline deadline(timeout_ns);
  if (status.code() != BP_TIMEOUT || deadline.poll()) return status;
  const auto begin = std::chrono::steady_clock::now();
  if (deadline.spins() && spin_until(ended)) return status;
  // Each pause is 1/16 of the time since the wait began, so a wait ends late by about 6 % at most.
  constexpr std::chrono::nanoseconds kShortest = std::chrono::microseconds(20), kLongest = std::chrono::milliseconds(1);
  while (deadline.sleep(std::clamp((std::chrono::steady_clock::now() - begin) / 16, kShortest, kLongest))) {
    if (ended()) return status;
  }
  return status;
}

// Waits for a mark with the native device's wait(), or with poll_mark() if the native device has no wait(). Returns
// OK, TIMEOUT, or the failure of earlier work.
template <class Native>
Status await_mark(Native& native, const typename Native::Mark& mark, uint64_t timeout_ns) {
  if constexpr (requires { native.wait(mark, timeout_ns); }) {
    return native.wait(mark, timeout_ns);
  } else {
    return poll_mark(native, mark, timeout_ns);
  }
}

// Returns OK, or the failure that every call to the device returns.
template <class Native>
Status health_of(const Native& native) {
  if constexpr (requires { native.health(); }) return native.health();
  return {};
}

template <class Native>
class QueueState {
 public:
  // A point in a stream, after all commands up to `position`.
  struct Record {
    std::shared_ptr<QueueState> stream;  // null before the first record; a wait for this record returns at once
    typename Native::Mark mark{};
    uint64_t position = 0;
    bool timed = false;
  };

  // The argument `order` is the device's mutex, which is locked while a failure propagates from
  // stream to stream.
  QueueState(Native& native, std::recursive_mutex& order) : native_(native), order_(order) {}

  bool failed() const { return failed_at_.load(std::memory_order_acquire) != kNever; }
  Status failure() const {
    std::lock_guard lock(mutex_);
    return failure_;
  }
  // Records that command `position` or an earlier command failed. Returns the stream's first
  // failure, which may be older.
  Status fail(const Status& cause, uint64_t position) {
    note(cause, position);
    return failure();
  }

  // Records that command `position` waits for `other`, whose stream has not failed so far.
  void depend(uint64_t position, Record other) {
    std::lock_guard lock(order_);
    uint64_t passed = 0;
    for (std::size_t i = taken_; i < waits_.size(); ++i) {
      if (native_.poll(waits_[i].other.mark).code() == BP_TIMEOUT) break;
      passed = waits_[i].position;
    }
    if (passed != 0) inherit(passed);
    if (2 * taken_ >= waits_.size()) forget_taken();  // compacts waits_ before it grows
    waits_.push_back({position, std::move(other)});
    waiting_.store(true, std::memory_order_release);
  }

  // Call after the device has completed command `position`. If a command up to `position` waited
  // for a stream that failed, this stream fails too. Returns the failure of the commands up to
  // `position`.
  Status settle(uint64_t position) {
    if (waiting_.load(std::memory_order_acquire)) {
      std::lock_guard lock(order_);
      inherit(position);
    }
    return failed_at_.load(std::memory_order_acquire) <= position ? failure() : Status{};
  }

  // Blocks the host until the work before `record` has completed. Returns OK, TIMEOUT, or the
  // failure of this work.
  static Status await(const Record& record, uint64_t timeout_ns) {
    if (record.stream == nullptr) return {};
    QueueState& stream = *record.stream;
    const Status status = await_mark(stream.native_, record.mark, timeout_ns);
    if (status.ok()) return stream.settle(record.position);
    return status.code() == BP_TIMEOUT ? status : stream.fail(status, record.position);
  }

  // Returns the failure of a stream that waited for another stream, which failed with `cause`.
  static Status of_other(const Status& cause) {
    return {cause.code(), text("another stream, whose event this one waits on, failed: ", cause.message()),
            cause.vendor_code()};
  }

 private:
  struct Wait {
    uint64_t position;
    Record other;
  };
  static constexpr uint64_t kNever = UINT64_MAX;

  void note(const Status& cause, uint64_t position) {
    std::lock_guard lock(mutex_);
    if (!failed()) {
      failure_ = cause.code() == BP_DEVICE_LOST ? cause
                                                : Status(BP_EXECUTION_FAILED,
                                                         text("accepted work failed: ", cause.message(),
                                                              "; destroy this stream and go on with a new one"),
                                                         cause.vendor_code())
                                                      .with_op(cause.op());
    }
    failed_at_.store(std::min(failed_at_.load(std::memory_order_relaxed), position), std::memory_order_release);
  }

  // Copies failures of other streams to this stream, if commands up to `position` waited for those
  // streams. The caller holds order_.
  void inherit(uint64_t position) {
    // Handles the waits in order of position. The stream that a wait refers to may itself wait for an earlier
    // position of this stream. await() then calls this function recursively.
    while (taken_ < waits_.size() && waits_[taken_].position <= position) {
      const Wait wait = std::move(waits_[taken_++]);
      const Status status = await(wait.other, 0);
      if (!status.ok() && status.code() != BP_TIMEOUT) note(of_other(status), wait.position);
    }
    if (taken_ == waits_.size()) forget_taken();
    waiting_.store(!waits_.empty(), std::memory_order_release);
  }
  // Erases the handled entries. waits_ keeps its capacity.
  void forget_taken() {
    waits_.erase(waits_.begin(), waits_.begin() + static_cast<std::ptrdiff_t>(taken_));
    taken_ = 0;
  }

  Native& native_;
  std::recursive_mutex& order_;
  std::atomic<uint64_t> failed_at_{kNever};
  std::atomic<bool> waiting_{false};  // whether waits_ has entries
  // Guarded by order_ and sorted by position. Entries before taken_ have been handled.
  std::vector<Wait> waits_;
  std::size_t taken_ = 0;
  mutable std::mutex mutex_;
  Status failure_;
};

}  // namespace backplane::kit
