// SPDX-License-Identifier: Apache-2.0
// Streams, events and plans of a queue device. queue_device.hpp documents the native device.
#pragma once

#include <backplane/kit/driver_guard.hpp>
#include <backplane/kit/queue_graph.hpp>
#include <backplane/kit/queue_state.hpp>

namespace backplane::kit {

// A compiled operator for a class of descriptors.
template <class Native>
struct QueuePlan : PlanForm {
  using Program = typename Native::Program;

  std::shared_ptr<const Program> program;
  mutable std::atomic<bool> launched{false};  // set after the first launch, at which a driver may compile again
  mutable std::atomic<uint64_t> held_by{0};   // number of the latest Interval that keeps the program alive
};

// A point in a stream. device.h defines what record and wait mean.
template <class Native>
class QueueEvent {
 public:
  using Record = typename QueueState<Native>::Record;
  using Point = typename QueueCapture<Native>::Point;

  explicit QueueEvent(bool timed) : timed_(timed) {}

  bool timed() const { return timed_; }
  Record latest() const {
    std::lock_guard lock(mutex_);
    return record_;
  }
  // Returns the point of a capture that was recorded last. Its capture is null if the event was last recorded outside
  // of captures.
  Point latest_point() const {
    std::lock_guard lock(mutex_);
    return point_;
  }
  // Returns whether the event was last recorded in a capture.
  bool in_graph() const { return in_graph_.load(std::memory_order_acquire); }
  void set(Record record, Point point = {}) {
    std::lock_guard lock(mutex_);
    std::swap(record_, record);
    std::swap(point_, point);
    in_graph_.store(point_.capture != nullptr, std::memory_order_release);
  }

 private:
  const bool timed_;
  mutable std::mutex mutex_;
  Record record_;
  Point point_;
  std::atomic<bool> in_graph_{false};
};

template <class Native>
class QueueStream {
 public:
  using Mark = typename Native::Mark;
  using Memory = typename Native::Memory;
  using Plan = QueuePlan<Native>;
  using Queue = typename Native::Queue;
  using Record = typename QueueState<Native>::Record;
  using State = QueueState<Native>;
  using Capture = QueueCapture<Native>;
  using Work = QueueWork<Native>;

  // `foreign` means that other code also enqueues on the native queue.
  QueueStream(Native& native, std::unique_ptr<Queue> queue, std::recursive_mutex& order, bool foreign = false)
      : native_(native), queue_(std::move(queue)), state_(std::make_shared<State>(native, order)), foreign_(foreign) {
    kept_.reserve(kKept);
    for (Interval& interval : intervals_) interval.programs.reserve(kKept);
  }
  // Waits for enqueued commands, unless the device is lost or refuses marks for a second.
  ~QueueStream() {
    Status ignored = wait(BP_WAIT_FOREVER);
    // A waiting stream holds references to the streams that it waits for. settle() releases these
    // references.
    ignored = state_->settle(UINT64_MAX);
  }
  QueueStream(const QueueStream&) = delete;
  QueueStream& operator=(const QueueStream&) = delete;

  const std::shared_ptr<State>& state() const { return state_; }
  const Queue& queue() const { return *queue_; }
  // From this call on, other code may enqueue on the native queue.
  Queue& share_queue() {
    foreign_ = true;
    return *queue_;
  }
  bool capturing() const { return capture_ != nullptr && capture_->active(); }
  const std::shared_ptr<Capture>& capture() const { return capture_; }
  std::size_t lane() const { return lane_; }
  // Adds the stream to a capture, in which the stream has the index `lane`.
  void join(std::shared_ptr<Capture> capture, std::size_t lane) {
    capture_ = std::move(capture);
    lane_ = lane;
  }
  // Returns the failure that every call returns from now on, or OK.
  Status failure() const { return state_->failed() ? state_->failure() : health_of(native_); }

  // Enqueues one command, or captures it. `body(Native&, Queue&)` enqueues all of the command or
  // nothing, unless it returns EXECUTION_FAILED.
  template <class Body>
  Status enqueue(const Body& body) {
    if (Status status = failure(); !status.ok()) return status;
    if constexpr (RecordsGraphs<Native>) {
      if (capturing()) return capture_->record(native_, *queue_, lane_, body);
    }
    Status status = body(native_, *queue_);
    if (status.ok()) {
      ++position_;
      return status;
    }
    return is_end(status) ? state_->fail(status, ++position_) : status;
  }

  Status execute(const Plan& plan, const bp_execution* execution) {
    if (state_->failed()) return state_->failure();
    if (Status status = bind_queue_call(plan, execution, call_); !status.ok()) return status;
    if constexpr (!requires { Native::kProgramsStay; }) {
      if (capturing()) {
        capture_->keep(plan.program);
      } else if (Status status = keep(plan.program, plan.held_by); !status.ok()) {
        return status;
      }
    }
    return enqueue([&](Native& native, Queue& queue) {
      if (plan.launched.load(std::memory_order_acquire)) return native.launch(queue, *plan.program, call_);
      const detail::GuardOf<Native> guard;
      Status status = native.launch(queue, *plan.program, call_);
      plan.launched.store(true, std::memory_order_release);
      return status;
    });
  }

  // Enqueues a graph with the ranges in `work->launched`.
  Status launch(const std::shared_ptr<Work>& work)
    requires RecordsGraphs<Native>
  {
    if (Status status = failure(); !status.ok()) return status;
    if (Status status = keep(work, work->held_by); !status.ok()) return status;
    return enqueue([&](Native& native, Queue& queue) {
      return native.launch_graph(queue, *work->native, std::span<const typename Work::Range>(work->launched));
    });
  }

  // Submits all commands so far and returns the point after them.
  Result<Record> record(bool timed) {
    Status status = failure();
    if (status.ok()) status = mark(timed);
    if (!status.ok()) return status;
    return Record{state_, mark_, position_, timed};
  }

  Status wait_for(const Record& record) {
    if (Status status = failure(); !status.ok()) return status;
    if (record.stream == nullptr || record.stream == state_) return {};
    const Status other = State::await(record, 0);
    const bool passed = other.ok();
    if (!passed && other.code() != BP_TIMEOUT) return state_->fail(State::of_other(other), ++position_);
    if constexpr (!requires { Native::kWaitsForPassed; }) {
      if (passed) return {};
    }
    Status status = enqueue([&](Native& native, Queue& queue) { return native.wait_for(queue, record.mark); });
    if (status.ok() && !passed) state_->depend(position_, record);
    return status;
  }

  // Reports a failure only after no command accesses memory any more. If the native device refuses a mark, the stream
  // may be pending, so the wait tries again until the timeout. A device that refuses marks for a second has failed.
  Status wait(uint64_t timeout_ns) {
    if (idle_at_ == position_ && !foreign_) {
      Status status = state_->settle(UINT64_MAX);
      return status.ok() ? health_of(native_) : status;
    }
    const Deadline deadline(timeout_ns);
    if (foreign_) {
      // A stream with a pending mark is itself pending, so this poll needs no new mark.
      const bool pending = marked_at_ == position_ && native_.poll(mark_).code() == BP_TIMEOUT;
      if (pending && timeout_ns == 0) return timed_out();
    }
    const Deadline patience(kPatienceNs);
    Status status = mark(false);
    for (; is_refusal(status) && health_of(native_).ok() && patience.left_ns() != 0; status = mark(false)) {
      if (deadline.poll() || !deadline.sleep(kRetry)) return timed_out();
    }
    if (!status.ok()) return state_->fail(status, position_);
    const uint64_t left_ns = deadline.left_ns();
    status = await_mark(native_, mark_, foreign_ ? std::max(left_ns, kMarkNs) : left_ns);
    if (status.code() == BP_TIMEOUT) return status;
    idle_at_ = position_;
    kept_.clear();
    for (Interval& interval : intervals_) interval.programs.clear();
    interval_ = next_interval();
    return status.ok() ? state_->settle(UINT64_MAX) : state_->fail(status, position_);
  }

 private:
  // The programs and graphs launched between two marks. They are kept until the second mark has
  // completed, because plans and graphs may be destroyed earlier.
  struct Interval {
    Mark mark{};
    std::vector<std::shared_ptr<const void>> programs;
  };
  static constexpr std::size_t kKept = 64;      // maximum number of programs and graphs per interval
  static constexpr std::size_t kIntervals = 8;  // maximum number of intervals in flight
  // The minimum timeout of a wait on a native queue that other code uses, in nanoseconds. Each such wait makes a new
  // mark, and even an idle queue needs some time to complete the mark. Without this minimum, polls might never see
  // the queue idle.
  static constexpr uint64_t kMarkNs = 1'000'000;
  static constexpr std::chrono::milliseconds kRetry{1};   // the pause after a refused mark
  static constexpr uint64_t kPatienceNs = 1'000'000'000;  // the time after which refused marks are a failure

  // Returns whether the failure of a command is permanent for the stream. A failure is permanent if
  // a part of the command was enqueued, or if earlier commands are lost.
  static bool is_end(const Status& status) {
    return status.code() == BP_EXECUTION_FAILED || status.code() == BP_DEVICE_LOST;
  }
  // Returns whether the native device enqueued nothing, so that a later call may succeed.
  static bool is_refusal(const Status& status) {
    return status.code() == BP_OUT_OF_MEMORY || status.code() == BP_INTERNAL;
  }

  // Keeps a program or a graph alive until the open interval has completed. `held_by` is the number of the latest
  // interval that keeps the object. Allocates nothing after the vectors of all intervals have grown to kKept entries.
  template <class T>
  Status keep(const std::shared_ptr<T>& object, std::atomic<uint64_t>& held_by) {
    if (held_by.load(std::memory_order_relaxed) == interval_) return {};
    if (kept_.size() == kKept) {
      if (Status status = mark(false); !status.ok()) return status;
    }
    kept_.push_back(object);
    held_by.store(interval_, std::memory_order_relaxed);
    return {};
  }

  // Sets mark_ to the point after all commands so far. Without new commands, an untimed call keeps
  // the previous mark, unless other code may have enqueued work.
  Status mark(bool timed) {
    if (!timed && !foreign_ && marked_at_ == position_) return {};
    auto made = native_.mark(*queue_, timed);
    if (!made.ok()) return is_end(made.status()) ? state_->fail(made.status(), position_) : made.status();
    mark_ = std::move(made.value());
    marked_at_ = position_;
    // After a timed mark, the stream is treated as pending, even without new commands. The next
    // wait then also waits for the mark, so that its time can be read after the wait.
    idle_at_ = UINT64_MAX;
    close_interval();
    return {};
  }

  void close_interval() {
    if (kept_.empty()) return;
    Interval& next = intervals_[closed_++ % kIntervals];
    // If all intervals are in flight, waits for the oldest interval. The stream's next wait reports
    // a failure of that interval.
    if (!next.programs.empty()) (void)await_mark(native_, next.mark, BP_WAIT_FOREVER);
    next.programs.clear();
    std::swap(next.programs, kept_);
    next.mark = mark_;
    interval_ = next_interval();
  }
  // Returns a number that is unique within the process.
  static uint64_t next_interval() {
    static std::atomic<uint64_t> last{0};
    return ++last;
  }

  Native& native_;
  std::unique_ptr<Queue> queue_;
  std::shared_ptr<State> state_;
  bool foreign_;                     // whether other code may enqueue work, which position_ does not count
  uint64_t position_ = 0;            // number of enqueued commands
  uint64_t idle_at_ = 0;             // number of commands that are known to have completed
  uint64_t marked_at_ = UINT64_MAX;  // number of commands before mark_
  Mark mark_{};
  QueueCall<Memory> call_;
  uint64_t interval_ = next_interval();
  std::vector<std::shared_ptr<const void>> kept_;  // programs and graphs of the open interval
  std::array<Interval, kIntervals> intervals_;
  std::size_t closed_ = 0;
  std::shared_ptr<Capture> capture_;  // the stream's latest capture, which may have ended
  std::size_t lane_ = 0;
};

}  // namespace backplane::kit
