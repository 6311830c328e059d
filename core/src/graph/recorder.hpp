// SPDX-License-Identifier: Apache-2.0
// Records the enqueue calls of streams in a graph. The calls are validated and planned as usual,
// but do not reach the plugin. The plugin's streams are therefore never in capture while the
// framework uses them.
//
// A lane is the state of one recorded stream. Executions need temporaries and workspace, whose sizes
// are known only when the recording ends. Until then, the address of a tag in the lane takes the
// place of the plugin's buffer in an operand.
#pragma once

#include <backplane/backplane.h>

#include <memory>
#include <unordered_set>
#include <vector>

#include "dispatch/eager_call.hpp"
#include "graph/graph.hpp"

namespace backplane::core {

class Recorder final : public Object {
 public:
  // Begins a recording on `stream`, whose lock the caller holds. Throws the errors of
  // bph_graph_begin.
  static void begin(Stream& stream, const bph_graph_desc& desc);
  // Ends the recording of `stream`, and returns the graph. Throws the errors of bph_graph_end.
  static Ref<Graph> end(Stream& stream);
  // Called when a recorded stream is released. Discards the recording if it began on this stream.
  static void forget(Stream& stream) noexcept;

  // Records the plugin calls that `enqueue` makes for one call of the host API. Nothing is recorded
  // if `enqueue` throws. The graph keeps the buffers.
  template <class Enqueue>
  void record_call(Stream& stream, const Buffer* const* buffers, uint32_t count, const Enqueue& enqueue) {
    const Mark mark = start(stream, buffers, count);
    try {
      enqueue();
    } catch (...) {
      roll_back(mark);
      throw;
    }
  }

  // While a stream is recorded, the functions that enqueue work call these functions instead of the
  // plugin.
  void execute(Stream& stream, const PlanEntry& entry, const bp_op_desc& desc, const bp_operand* inputs,
               const bp_operand* outputs, const bp_operand* scalars);
  void copy(Stream& stream, Buffer& dst, uint64_t dst_offset, Buffer& src, uint64_t src_offset, uint64_t bytes);
  void copy_in(Stream& stream, Buffer& dst, uint64_t dst_offset, const void* src, uint64_t bytes);
  void copy_out(Stream& stream, void* dst, Buffer& src, uint64_t src_offset, uint64_t bytes);
  // `temporaries` returns memory for a program's temporaries. `stage` returns memory for one staged
  // operand of the current call.
  Span temporaries(Stream& stream, uint64_t bytes);
  bp_operand stage(Stream& stream, uint64_t bytes);

  // Records a point of the stream, and returns its number.
  uint32_t add_point(Stream& stream);
  // Makes later work of `stream` follow the point. Throws INVALID_ARGUMENT unless the recording is active and the
  // stream can join it.
  void wait_for(Stream& stream, uint32_t point);

 private:
  // For each lane, the number of its calls that precede a point of the recording.
  using Clock = std::vector<uint32_t>;
  struct Lane {
    Stream* stream;  // null after the stream was released
    uint32_t calls = 0;
    Clock before;
    uint64_t temporary_bytes = 0, staging_bytes = 0, workspace_bytes = 0;
    uint64_t staging_used = 0;  // bytes that the current call uses
    char temporary_tag = 0, staging_tag = 0, workspace_tag = 0;
  };
  // The sizes of the graph's lists before a call. If the call fails, roll_back restores these
  // sizes.
  struct Mark {
    size_t nodes, transfers, operands, descriptors, patches, fixed, fixed_written;
    uint64_t enqueued;
    uint32_t lane, calls;
  };
  enum class Place : uint8_t { operand, source, destination };
  struct PatchDraft {
    Place place;
    bool written;
    uint8_t need_log2;  // alignment that the operand states
    uint32_t index;     // index of the operand or the transfer
    uint32_t binding;
    uint64_t delta;
  };

  Recorder() = default;
  void add_lane(Stream& stream);
  void detach(Stream& stream) noexcept;
  void detach_all() noexcept;
  Mark start(Stream& stream, const Buffer* const* buffers, uint32_t count);
  void roll_back(const Mark& mark) noexcept;
  void keep(const Buffer* buffer);
  GraphNode& add_node(Stream& stream, GraphNode::Kind kind, size_t at);
  void add_transfer(Stream& stream, GraphNode::Kind kind, const GraphTransfer& transfer);
  void use(const Range& range, bool written, Place place, size_t index);
  void use(const bp_tensor_desc& view, const bp_operand& operand, bool written, size_t index);
  void check_joined() const;
  void finish();
  void allocate_lanes();

  Ref<Graph> graph_;  // null after the recording has ended
  uint32_t flags_ = 0;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<Clock> points_;
  std::vector<PatchDraft> patches_;
  std::unordered_set<const PlanEntry*> entries_;
  std::unordered_set<const Buffer*> buffers_;
};

}  // namespace backplane::core
