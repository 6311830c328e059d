// SPDX-License-Identifier: Apache-2.0
// Tasks of host streams, and their capture in a graph. The queue of the launching stream runs the
// captured tasks one after another, in the order in which they were captured. This order obeys the
// events of the capture.
#pragma once

#include <backplane/kit/call.hpp>
#include <backplane/kit/capture.hpp>
#include <backplane/kit/host_semaphore.hpp>
#include <backplane/kit/timeline.hpp>
#include <deque>
#include <optional>

namespace backplane::kit {

using Clock = std::chrono::steady_clock;

// The time on Clock, in nanoseconds, at which a stream reached the point that a timed event
// records.
struct Stamp {
  std::atomic<int64_t> ns{0};
};

class HostWork;

struct HostTask {
  enum class Kind { kCall, kCopy, kWait, kStamp, kSignal, kWaitSemaphore, kGraph };

  Kind kind = Kind::kCall;
  Kernel kernel = nullptr;
  Call call;
  void* dst = nullptr;
  const void* src = nullptr;
  uint64_t bytes = 0;
  std::shared_ptr<Timeline> other;  // kWait waits until `other` reaches `point`
  uint64_t point = 0;
  std::shared_ptr<Stamp> stamp;
  std::shared_ptr<HostSemaphore> semaphore;  // kSignal raises this to `value`; kWaitSemaphore waits for `value`
  uint64_t value = 0;
  std::shared_ptr<HostWork> work;     // kGraph runs these tasks
  std::vector<std::byte*> addresses;  // the start of each binding in this launch
};

// The captured tasks of a graph. Only one launch at a time uses them.
class HostWork {
 public:
  struct Binding {
    std::byte* address;
    uint64_t bytes;
    uint32_t kind;  // BP_MEMORY_*
  };

  explicit HostWork(std::vector<Binding> bindings) : bindings_(std::move(bindings)) {
    for (const Binding& binding : bindings_) current_.push_back(binding.address);
  }
  HostWork(const HostWork&) = delete;
  HostWork& operator=(const HostWork&) = delete;

  const std::vector<Binding>& bindings() const { return bindings_; }
  std::deque<HostTask>& tasks() { return tasks_; }

  // Adds a task that `fill(HostTask&) -> Status` prepares. If `fill` fails, nothing is added.
  template <class Fill>
  Status add(HostTask::Kind kind, const Fill& fill) {
    HostTask& task = tasks_.emplace_back();
    const std::size_t patches = patches_.size();
    Status status;
    try {
      task.kind = kind;
      status = fill(task);
      if (status.ok()) find_bindings(task);
    } catch (...) {
      patches_.resize(patches);
      tasks_.pop_back();
      throw;
    }
    if (!status.ok()) tasks_.pop_back();
    return status;
  }

  // Changes the pointers of the tasks, so that binding i begins at addresses[i].
  void bind(const std::vector<std::byte*>& addresses) {
    if (addresses == current_) return;
    for (const Patch& patch : patches_) {
      std::byte* const address = addresses[patch.binding] + patch.delta;
      std::memcpy(patch.pointer, &address, sizeof(address));
    }
    current_ = addresses;
  }

 private:
  // A pointer in a task that points into a binding.
  struct Patch {
    void* pointer;
    std::size_t binding;
    std::ptrdiff_t delta;
  };

  void find_bindings(HostTask& task) {
    if (task.kind == HostTask::Kind::kCopy) {
      find_binding(&task.dst, task.dst);
      find_binding(&task.src, task.src);
      return;
    }
    for (View& view : task.call.views) {
      if (!view.is_immediate) find_binding(&view.data, view.data);
    }
    for (const std::byte*& scalar : task.call.scalar_at) find_binding(&scalar, scalar);
  }
  void find_binding(void* pointer, const void* address) {
    const auto at = reinterpret_cast<uintptr_t>(address);
    for (std::size_t i = 0; i < bindings_.size(); ++i) {
      const auto begin = reinterpret_cast<uintptr_t>(bindings_[i].address);
      if (at >= begin && at - begin < bindings_[i].bytes) {
        return patches_.push_back({pointer, i, static_cast<std::ptrdiff_t>(at - begin)});
      }
    }
  }

  std::vector<Binding> bindings_;
  std::vector<std::byte*> current_;
  std::deque<HostTask> tasks_;
  std::vector<Patch> patches_;
};

// A graph that a host device returns. Pending launches keep `work` alive.
struct HostGraph {
  std::shared_ptr<HostWork> work;
};

// A capture in progress.
class HostCapture : public CaptureLanes {
 public:
  explicit HostCapture(std::shared_ptr<HostWork> work) : work_(std::move(work)) {}

  bool active() const { return work_ != nullptr; }
  template <class Fill>
  Status add(std::size_t lane, HostTask::Kind kind, const Fill& fill) {
    Status status = work_->add(kind, fill);
    if (status.ok()) add_command(lane);
    return status;
  }
  // Ends the capture and returns the work, or null if the first lane has not waited for all tasks
  // of the other lanes.
  std::shared_ptr<HostWork> end() {
    const std::shared_ptr<HostWork> work = std::exchange(work_, nullptr);
    return joined() ? work : nullptr;
  }

 private:
  std::shared_ptr<HostWork> work_;  // null after the capture has ended
};

}  // namespace backplane::kit
