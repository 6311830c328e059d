// SPDX-License-Identifier: Apache-2.0
// The progress of a stream: a counter that threads wait on, and the stream's first failure.
#pragma once

#include <algorithm>
#include <atomic>
#include <backplane/kit/error.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace backplane::kit {

// Yields to the other hardware thread of the core.
inline void cpu_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Polls `done` for about 50 µs, and returns its last result. Yields between polls, so that other
// threads can run even if there are few cores. On a busy machine a yield may take milliseconds, and
// the polling then ends.
template <class Done>
bool spin_until(const Done& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(50);
  for (int round = 0; round < 16; ++round) {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      cpu_pause();
    }
    if (std::chrono::steady_clock::now() >= end) break;
    std::this_thread::yield();
  }
  return done();
}

// The deadline of a wait, computed from an ABI timeout. With BP_WAIT_FOREVER, or with a timeout
// that exceeds the clock's range, the deadline never passes.
class Deadline {
 public:
  explicit Deadline(uint64_t timeout_ns) : poll_(timeout_ns == 0), forever_(timeout_ns > kLongest) {
    if (!poll_ && !forever_) at_ = std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout_ns);
  }
  bool poll() const { return poll_; }
  // Returns whether enough time is left for spin_until. Near the deadline, the thread
  // must not yield, because it could lose a whole time slice and exceed the deadline.
  bool spins() const { return forever_ || at_ - std::chrono::steady_clock::now() > std::chrono::milliseconds(20); }
  // Waits for `done`. Returns false if the deadline passed first.
  template <class Done>
  bool wait(std::condition_variable& signal, std::unique_lock<std::mutex>& lock, const Done& done) const {
    if (!forever_) return signal.wait_until(lock, at_, done);
    signal.wait(lock, done);
    return true;
  }
  // Returns the timeout of a wait that begins now: at least 0, or BP_WAIT_FOREVER.
  uint64_t left_ns() const {
    if (poll_ || forever_) return poll_ ? 0 : BP_WAIT_FOREVER;
    const auto left = at_ - std::chrono::steady_clock::now();
    return static_cast<uint64_t>(std::max<std::chrono::nanoseconds>(left, std::chrono::nanoseconds(0)).count());
  }
  // Sleeps for `pause`, at most until the deadline. Returns false if the deadline has passed.
  bool sleep(std::chrono::nanoseconds pause) const {
    const auto now = std::chrono::steady_clock::now();
    if (!forever_ && now >= at_) return false;
    std::this_thread::sleep_until(forever_ ? now + pause : std::min(now + pause, at_));
    return true;
  }

 private:
  static constexpr uint64_t kLongest = uint64_t{1} << 62;  // about 146 years
  bool poll_;
  bool forever_;
  std::chrono::steady_clock::time_point at_;
};

// A point is a number of commands. A stream reaches point n when its first n commands have completed.
class Timeline {
 public:
  static constexpr uint64_t kNever = UINT64_MAX;

  bool reached(uint64_t point) const { return completed_.load() >= point; }
  bool failed() const { return failed_at_.load(std::memory_order_acquire) != kNever; }
  // Returns whether a command up to `point` has failed.
  bool failed_before(uint64_t point) const { return failed_at_.load(std::memory_order_acquire) <= point; }

  // Returns the first failure. Call only if failed() is true.
  Status failure() const {
    std::lock_guard lock(mutex_);
    return failure_;
  }

  // Records the failure of the command whose completion reaches `point`. The stream's worker calls
  // this function before advance(point).
  void fail(uint64_t point, Status cause) {
    std::lock_guard lock(mutex_);
    if (failed_at_.load(std::memory_order_relaxed) != kNever) return;
    failure_ = std::move(cause);
    failed_at_.store(point, std::memory_order_release);
  }
  void advance(uint64_t point) {
    completed_.store(point);
    if (waiters_.load() == 0) return;
    { std::lock_guard lock(mutex_); }
    passed_.notify_all();
  }

  // Waits until all commands up to `point` have completed. Returns OK, TIMEOUT, or the failure of
  // these commands.
  Status wait(uint64_t point, uint64_t timeout_ns) {
    if (!reached(point)) {
      const Deadline deadline(timeout_ns);
      if (deadline.poll()) return timed_out();
      const auto done = [&] { return reached(point); };
      if (!(deadline.spins() && spin_until(done))) {
        waiters_.fetch_add(1);
        std::unique_lock lock(mutex_);
        const bool passed = deadline.wait(passed_, lock, done);
        waiters_.fetch_sub(1);
        if (!passed) return timed_out();
      }
    }
    return failed_before(point) ? failure() : Status{};
  }

 private:
  std::atomic<uint64_t> completed_{0};
  std::atomic<uint64_t> failed_at_{kNever};
  std::atomic<uint32_t> waiters_{0};
  mutable std::mutex mutex_;
  std::condition_variable passed_;
  Status failure_;
};

}  // namespace backplane::kit
