// SPDX-License-Identifier: Apache-2.0
// In-order streams over queues. A queue has a worker thread and a ring of tasks with one producer
// and one consumer. Several streams may share a queue.
#pragma once

#include <signal.h>

#include <backplane/kit/host_graph.hpp>
#include <cfenv>
#include <functional>
#include <system_error>

namespace backplane::kit {

class HostQueue {
 public:
  static constexpr uint64_t kRing = 256;  // maximum number of pending tasks
  // Copies of at most this many bytes run on the calling thread if no task is pending. Such a copy
  // takes less time than the worker needs to wake up.
  static constexpr uint64_t kDirectCopy = 16384;

  // `begin` runs first on the worker thread, and may prepare the thread for kernels.
  explicit HostQueue(std::function<void()> begin)
      : timeline_(std::make_shared<Timeline>()), ring_(kRing), begin_(std::move(begin)) {
    for (HostTask& task : ring_) task.call.views.reserve(4);
    // The worker inherits this signal mask, so it receives no signals.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      worker_ = std::thread([this] { serve(); });
    } catch (...) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  // Waits until no task is pending. A pending wait for a semaphore fails, and the tasks after it
  // are dropped.
  ~HostQueue() {
    stop_.store(true);
    wake();
    worker_.join();
  }
  HostQueue(const HostQueue&) = delete;
  HostQueue& operator=(const HostQueue&) = delete;

  const std::shared_ptr<Timeline>& timeline() const { return timeline_; }
  // Returns the point after all tasks that have been enqueued so far.
  uint64_t point() const { return tail_.load(std::memory_order_relaxed); }

  // Waits for all enqueued tasks. Reports a failure only when all tasks that follow the failed task
  // have been dropped, so that no task still accesses memory.
  Status wait(uint64_t timeout_ns) { return timeline_->wait(point(), timeout_ns); }

  // Enqueues a task that `fill(HostTask&) -> Status` prepares. If `fill` fails, nothing is
  // enqueued. A small copy completes during the call if no task is pending.
  template <class Fill>
  Status enqueue(HostTask::Kind kind, const Fill& fill) {
    if (timeline_->failed()) return timeline_->failure();
    const uint64_t tail = point();
    if (tail >= kRing && !timeline_->reached(tail - kRing + 1)) {
      if (Status status = timeline_->wait(tail - kRing + 1, BP_WAIT_FOREVER); !status.ok()) return status;
    }
    HostTask& task = ring_[tail % kRing];
    task.kind = kind;
    if (Status status = fill(task); !status.ok()) return status;
    if (kind == HostTask::Kind::kCopy && task.bytes <= kDirectCopy && timeline_->reached(tail)) {
      std::memcpy(task.dst, task.src, task.bytes);
      return {};
    }
    tail_.store(tail + 1);
    if (sleeping_.load()) wake();
    return {};
  }

 private:
  void wake() {
    { std::lock_guard lock(mutex_); }
    ready_.notify_one();
  }

  void serve() {
    std::fesetenv(FE_DFL_ENV);  // the creating thread may have another floating-point mode
    if (begin_) begin_();
    for (uint64_t head = 0; await_task(head); ++head) {
      HostTask& task = ring_[head % kRing];
      if (!timeline_->failed()) run(task, head + 1);
      task.other.reset();
      task.stamp.reset();
      task.semaphore.reset();
      task.call.state.reset();
      task.work.reset();
      timeline_->advance(head + 1);
    }
  }

  // Waits for task number `head`. Returns false if the queue is being destroyed and no task is
  // pending.
  bool await_task(uint64_t head) {
    const auto has_task = [&] { return tail_.load() > head; };
    if (spin_until([&] { return has_task() || stop_.load(); })) {
      if (has_task()) return true;
    } else {
      std::unique_lock lock(mutex_);
      sleeping_.store(true);
      ready_.wait(lock, [&] { return has_task() || stop_.load(); });
      sleeping_.store(false);
    }
    return has_task();
  }

  void run(HostTask& task, uint64_t point) {
    switch (task.kind) {
      case HostTask::Kind::kCall:
        return run_call(task, point);
      case HostTask::Kind::kCopy:
        std::memcpy(task.dst, task.src, task.bytes);
        return;
      case HostTask::Kind::kWait:
        if (const Status status = task.other->wait(task.point, BP_WAIT_FOREVER); !status.ok()) {
          timeline_->fail(point, Status(BP_EXECUTION_FAILED,
                                        "another stream, whose event this one waits on, failed: " + status.message())
                                     .with_op(status.op()));
        }
        return;
      case HostTask::Kind::kStamp:
        task.stamp->ns.store(std::chrono::nanoseconds(Clock::now().time_since_epoch()).count(),
                             std::memory_order_relaxed);
        return;
      case HostTask::Kind::kGraph:
        task.work->bind(task.addresses);
        for (HostTask& captured : task.work->tasks()) {
          run(captured, point);
          if (timeline_->failed()) return;
        }
        return;
      case HostTask::Kind::kSignal:
        task.semaphore->raise(task.value);
        return;
      case HostTask::Kind::kWaitSemaphore:
        if (!task.semaphore->wait(task.value, stop_)) {
          timeline_->fail(point,
                          Status(BP_EXECUTION_FAILED,
                                 "the stream was destroyed before a semaphore reached its value; signal it, wait "
                                 "for the stream, and then destroy the stream"));
        }
        return;
    }
  }

  void run_call(HostTask& task, uint64_t point) {
    task.call.scratch = &scratch_;
    try {
      task.kernel(task.call);
    } catch (const std::exception& failure) {
      fail_call(task, point, failure.what());
    } catch (...) {
      fail_call(task, point, "an exception of unknown type");
    }
  }

  void fail_call(const HostTask& task, uint64_t point, const char* cause) noexcept {
    std::string message;
    try {
      message =
          text(task.call.op->name, " failed while it ran: ", cause, "; destroy this stream and go on with a new one");
    } catch (const std::bad_alloc&) {
      message.clear();
    }
    timeline_->fail(point, Status(BP_EXECUTION_FAILED, std::move(message)).with_op(task.call.op->id));
  }

  std::shared_ptr<Timeline> timeline_;
  std::vector<HostTask> ring_;
  Scratch scratch_;
  const std::function<void()> begin_;
  alignas(64) std::atomic<uint64_t> tail_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> sleeping_{false};
  std::mutex mutex_;
  std::condition_variable ready_;
  std::thread worker_;
};

// A stream that enqueues on a queue of its own, or on the queue of another stream.
class HostStream {
 public:
  static constexpr uint64_t kRing = HostQueue::kRing;

  explicit HostStream(std::function<void()> begin = {}) : queue_(std::make_shared<HostQueue>(std::move(begin))) {}
  explicit HostStream(std::shared_ptr<HostQueue> queue) : queue_(std::move(queue)) {}

  const std::shared_ptr<HostQueue>& queue() const { return queue_; }
  const std::shared_ptr<Timeline>& timeline() const { return queue_->timeline(); }
  uint64_t point() const { return queue_->point(); }
  Status wait(uint64_t timeout_ns) {
    if (capturing()) return waited_in_capture();
    return queue_->wait(timeout_ns);
  }
  // Enqueues a task, or captures it.
  template <class Fill>
  Status enqueue(HostTask::Kind kind, const Fill& fill) {
    if (capturing()) return capture_->add(lane_, kind, fill);
    return queue_->enqueue(kind, fill);
  }

  bool capturing() const { return capture_ != nullptr && capture_->active(); }
  const std::shared_ptr<HostCapture>& capture() const { return capture_; }
  std::size_t lane() const { return lane_; }
  // Adds the stream to a capture, in which the stream has the index `lane`.
  void join(std::shared_ptr<HostCapture> capture, std::size_t lane) {
    capture_ = std::move(capture);
    lane_ = lane;
  }

 private:
  std::shared_ptr<HostQueue> queue_;
  std::shared_ptr<HostCapture> capture_;
  std::size_t lane_ = 0;
};

// A point in a stream. device.h defines what record and wait mean.
class HostEvent {
 public:
  explicit HostEvent(bool timed) : timed_(timed) {}

  struct Record {
    std::shared_ptr<Timeline> timeline;  // null before the first record, and for a point in a graph
    uint64_t point = 0;
    std::shared_ptr<Stamp> stamp;
    std::shared_ptr<HostCapture> capture;  // capture of a point in a graph; otherwise null
    HostCapture::Counts counts;
  };
  bool timed() const { return timed_; }
  Record latest() const {
    std::lock_guard lock(mutex_);
    return record_;
  }

  Status record(HostStream& stream) {
    if (stream.capturing()) {
      Record point{nullptr, 0, nullptr, stream.capture(), stream.capture()->point(stream.lane())};
      std::lock_guard lock(mutex_);
      record_ = std::move(point);
      return {};
    }
    if (stream.timeline()->failed()) return stream.timeline()->failure();
    Record next{stream.timeline(), 0, nullptr, nullptr, {}};
    if (timed_) {
      next.stamp = std::make_shared<Stamp>();
      Status status = stream.enqueue(HostTask::Kind::kStamp, [&](HostTask& task) {
        task.stamp = next.stamp;
        return Status{};
      });
      if (!status.ok()) return status;
    }
    next.point = stream.point();
    std::lock_guard lock(mutex_);
    record_ = std::move(next);
    return {};
  }

  Status wait(uint64_t timeout_ns) const {
    const Record record = latest();
    if (record.capture != nullptr) return recorded_in_graph("event_wait");
    return record.timeline == nullptr ? Status{} : record.timeline->wait(record.point, timeout_ns);
  }

 private:
  const bool timed_;
  mutable std::mutex mutex_;
  Record record_;
};

}  // namespace backplane::kit
