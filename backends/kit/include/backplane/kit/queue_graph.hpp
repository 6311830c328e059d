// SPDX-License-Identifier: Apache-2.0
// Graphs of queue devices: the streams of a capture, and the recorded work. queue_device.hpp documents the native
// device.
#pragma once

#include <atomic>
#include <backplane/kit/capture.hpp>
#include <backplane/kit/queue_call.hpp>
#include <iterator>
#include <memory>

namespace backplane::kit {

// A range of a buffer that a launch of a graph may replace.
template <class Memory>
struct QueueRange {
  Memory memory{};
  uint64_t offset = 0;  // bytes
  uint64_t bytes = 0;
  uint32_t kind = BP_MEMORY_DEVICE;
};

// Whether a native device records graphs.
template <class Native>
concept RecordsGraphs = requires(Native& n, typename Native::Graph& g) { n.end_graph(g); };

namespace detail {

struct NoGraph {};
template <class Native>
struct NativeGraph {
  using type = NoGraph;
};
template <RecordsGraphs Native>
struct NativeGraph<Native> {
  using type = typename Native::Graph;
};

}  // namespace detail

// The recorded work of a graph. A stream that launched the work keeps it until the work has ended.
template <class Native>
struct QueueWork {
  using Range = QueueRange<typename Native::Memory>;

  std::unique_ptr<typename detail::NativeGraph<Native>::type> native;
  std::vector<Range> recorded;  // the ranges of the capture
  std::vector<Range> launched;  // the ranges of the latest launch
  std::vector<std::shared_ptr<const typename Native::Program>> programs;
  std::atomic<uint64_t> held_by{0};  // number of the latest Interval (queue_stream.hpp) that keeps the work alive
};

template <class Native>
struct QueueGraph {
  std::shared_ptr<QueueWork<Native>> work;
};

// A capture in progress. The native graph receives the commands of all streams, in the order of the calls. Each
// command follows the earlier commands of its stream and the points for which its stream has waited.
template <class Native>
class QueueCapture : public CaptureLanes {
  using Queue = typename Native::Queue;

 public:
  // A point in a capture.
  struct Point {
    std::shared_ptr<QueueCapture> capture;  // null if the point is outside of captures
    Counts counts;
    std::vector<uint32_t> nodes;  // the nodes that the point follows
  };

  explicit QueueCapture(std::shared_ptr<QueueWork<Native>> work) : work_(std::move(work)), last_(1) {}

  bool active() const { return work_ != nullptr; }
  std::size_t add_lane() {
    const std::size_t lane = CaptureLanes::add_lane();
    last_.resize(lane + 1);
    return lane;
  }
  // Returns the point after the commands of a lane so far. `self` refers to this capture.
  Point point(std::size_t lane, std::shared_ptr<QueueCapture> self) const {
    return {std::move(self), CaptureLanes::point(lane), last_[lane]};
  }
  // Makes later commands of a lane follow the point.
  void wait(std::size_t lane, const Point& point) {
    std::vector<uint32_t> merged;
    std::set_union(last_[lane].begin(), last_[lane].end(), point.nodes.begin(), point.nodes.end(),
                   std::back_inserter(merged));
    CaptureLanes::wait(lane, point.counts);
    last_[lane].swap(merged);
  }

  // Records one command. `body(Native&, Queue&)` enqueues the command. If `body` fails, nothing is recorded.
  template <class Body>
  Status record(Native& native, Queue& queue, std::size_t lane, const Body& body) {
    Recording recording(native, queue, *work_->native, last_[lane]);
    Status status = body(native, queue);
    if (!status.ok()) return status;
    const uint32_t size = work_->native->size();
    if (size != recording.before) last_[lane].assign(1, size - 1);
    recording.before = size;
    add_command(lane);
    return status;
  }
  // Keeps a program as long as the graph exists.
  void keep(std::shared_ptr<const typename Native::Program> program) { work_->programs.push_back(std::move(program)); }
  // Ends the capture and returns the work, or null if the first lane has not waited for all commands of the other
  // lanes.
  std::shared_ptr<QueueWork<Native>> end() {
    const std::shared_ptr<QueueWork<Native>> work = std::exchange(work_, nullptr);
    return joined() ? work : nullptr;
  }

 private:
  // While a recording exists, the queue adds its commands to the graph. The destructor keeps the first `before`
  // nodes. After a success, record() sets `before` to the new number of nodes.
  struct Recording {
    Recording(Native& of, Queue& on, typename Native::Graph& to, std::span<const uint32_t> after)
        : native(of), queue(on), graph(to), before(to.size()) {
      native.record(queue, &graph, after);
    }
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;
    ~Recording() {
      native.record(queue, nullptr, {});
      graph.shrink(before);
    }
    Native& native;
    Queue& queue;
    typename Native::Graph& graph;
    uint32_t before;
  };

  std::shared_ptr<QueueWork<Native>> work_;  // null after the capture has ended
  std::vector<std::vector<uint32_t>> last_;  // for each lane, the nodes that its next command follows; sorted
};

}  // namespace backplane::kit
