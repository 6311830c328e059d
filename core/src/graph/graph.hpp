// SPDX-License-Identifier: Apache-2.0
// A recorded graph: the calls of the plugin's slots, prepared once, and the memory that they use.
// The recorder (recorder.hpp) fills the graph. A launch calls the slots again, or launches the
// plugin's own graph (native_graph.hpp).
#pragma once

#include <backplane/backplane.h>

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "base/handle.hpp"
#include "base/ref.hpp"
#include "dispatch/plan_cache.hpp"
#include "graph/range.hpp"
#include "loading/device.hpp"
#include "memory/buffer.hpp"
#include "streams/stream.hpp"

namespace backplane::core {

class NativeGraph;

// One recorded call. Nodes of the kinds `point` and `wait` order the recorded streams. Only a
// plugin's own graph needs these nodes, because core launches all calls on one stream.
struct GraphNode {
  enum class Kind : uint8_t { execute, copy, copy_in, copy_out, point, wait };
  Kind kind = Kind::execute;
  uint32_t lane = 0;  // index of the recorded stream
  // Depending on the kind, the index of the first operand, of the transfer, or of the point.
  uint32_t at = 0;
  bp_plan* plan = nullptr;
  bp_execution execution = {};
};

// A recorded copy. For copy_in, `host_src` replaces `src`. For copy_out, `host_dst` replaces `dst`.
struct GraphTransfer {
  bp_operand dst = {};
  bp_operand src = {};
  void* host_dst = nullptr;
  const void* host_src = nullptr;
  uint64_t bytes = 0;
};

class Graph final : public Object {
 public:
  static constexpr HandleType kHandleType = HandleType::graph;

  // The caller has checked `bindings`.
  Graph(Ref<Device> owner, std::vector<Binding> bindings);
  ~Graph() override;

  // Enqueues the work on `stream`. Throws the errors of bph_graph_launch.
  void launch(Stream& stream, const bph_graph_binding* given, uint32_t count);
  bph_graph_info info() const noexcept;

  const Ref<Device> device;
  uint64_t public_handle = 0;

 private:
  friend class Recorder;
  friend class NativeGraph;

  // A copy of the descriptor of a plan's entry. Each staged operand has the view of its temporary.
  struct Descriptor {
    bp_op_desc desc;
    bp_tensor_desc views[2 * BP_MAX_OPERANDS];
  };
  // An operand inside a binding, at `delta` bytes from the start of the range.
  struct Patch {
    bp_operand* operand;
    uint32_t binding;
    uint64_t delta;
  };

  void resolve(const bph_graph_binding* given, uint32_t count);
  void check_replacements() const;
  void apply() noexcept;
  void record_use(Stream& stream);
  void replay(Stream& stream) const;
  bp_status call(const bp_device_api& api, bp_device* handle, bp_stream* stream, const GraphNode& node,
                 bp_error* error) const;

  std::vector<GraphNode> nodes_;
  std::vector<GraphTransfer> transfers_;
  std::vector<bp_operand> operands_;  // inputs, outputs and scalars of all executions
  std::deque<Descriptor> descriptors_;
  std::vector<Ref<PlanEntry>> entries_;  // own the plans and the descriptors that nodes refer to
  std::vector<Buffer*> buffers_;         // the graph holds each buffer once
  std::vector<Span> spans_;              // temporaries and workspace
  uint64_t span_bytes_ = 0;
  uint64_t enqueued_ = 0;  // number of executions and copies
  uint32_t lanes_ = 1, points_ = 0;

  std::vector<Binding> bindings_;
  std::vector<Patch> patches_;      // ordered by binding
  RangeSet fixed_, fixed_written_;  // memory of the graph outside the bindings, and the written part of this memory
  std::unique_ptr<NativeGraph> native_;

  std::mutex mutex_;            // guards the following members, and the patched operands
  std::vector<Range> current_;  // the ranges that the operands refer to
  std::vector<Range> wanted_;
  std::vector<uint32_t> order_;
  // Timelines of the streams on which the graph was launched. The buffers' memory is reused only
  // after the work of these streams.
  std::vector<Ref<Timeline>> timelines_;
};

}  // namespace backplane::core
