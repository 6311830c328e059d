// SPDX-License-Identifier: Apache-2.0
// Records calls, and gives the recorded operands their memory when the recording ends.
#include "graph/recorder.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "graph/native_graph.hpp"

namespace backplane::core {

namespace {

bp_buffer* tagged(const char& tag) { return reinterpret_cast<bp_buffer*>(const_cast<char*>(&tag)); }

uint64_t aligned(uint64_t bytes, uint64_t alignment) { return (bytes + alignment - 1) & ~(alignment - 1); }

}  // namespace

void Recorder::begin(Stream& stream, const bph_graph_desc& desc) {
  constexpr const char* function = "bph_graph_begin";
  if ((desc.flags & ~BPH_GRAPH_NO_NATIVE) != 0 || desc.reserved != 0) {
    throw Error(BP_UNSUPPORTED,
                "{}: flags {:#x} or reserved {:#x} has unknown bits; use 0 or BPH_GRAPH_NO_NATIVE, and 0", function,
                desc.flags, desc.reserved);
  }
  if (desc.bindings == nullptr && desc.binding_count != 0) {
    throw Error(BP_INVALID_ARGUMENT, "{}: {} bindings at a null address; pass their array", function,
                desc.binding_count);
  }
  std::vector<Binding> bindings;
  for (uint32_t i = 0; i < desc.binding_count; ++i) {
    bindings.push_back(resolve_binding(function, *stream.device, desc.bindings[i], i));
  }
  Ref<Recorder> recorder(kAdopt, new Recorder);
  recorder->flags_ = desc.flags;
  recorder->graph_ = Ref<Graph>(kAdopt, new Graph(stream.device, std::move(bindings)));
  // Other buffers must not reuse the memory of a binding, because their operands would then be operands of the binding.
  for (uint32_t i = 0; i < desc.binding_count; ++i) recorder->keep(find_handle<Buffer>(desc.bindings[i].buffer));
  recorder->add_lane(stream);
}

void Recorder::add_lane(Stream& stream) {
  lanes_.push_back(std::make_unique<Lane>());
  lanes_.back()->stream = &stream;
  stream.lane = static_cast<uint32_t>(lanes_.size() - 1);
  stream.recorder = this;
  retain();
  stream.gate.fetch_or(Stream::kGateRecording, std::memory_order_relaxed);
}

void Recorder::detach(Stream& stream) noexcept {
  lanes_[stream.lane]->stream = nullptr;
  stream.gate.fetch_and(~Stream::kGateRecording, std::memory_order_relaxed);
  stream.recorder = nullptr;
  release();
}

// Ends the recording of all streams. The caller holds a reference to the recorder.
void Recorder::detach_all() noexcept {
  for (const auto& lane : lanes_) {
    if (lane->stream != nullptr) detach(*lane->stream);
  }
}

void Recorder::forget(Stream& stream) noexcept {
  const Ref<Recorder> own(stream.recorder);
  if (!own) return;
  if (stream.lane != 0) return own->detach(stream);
  own->detach_all();
  own->graph_ = {};
}

Ref<Graph> Recorder::end(Stream& stream) {
  const Ref<Recorder> own(stream.recorder);
  if (!own || stream.lane != 0) {
    throw Error(BP_INVALID_ARGUMENT,
                "bph_graph_end: {}; call bph_graph_begin, and end on the stream on which the recording began",
                own ? "this stream joined the recording of another stream" : "the stream records no graph");
  }
  own->detach_all();
  Ref<Graph> graph = std::exchange(own->graph_, {});
  own->check_joined();
  own->graph_ = graph;
  struct Clear {
    ~Clear() { recorder.graph_ = {}; }
    Recorder& recorder;
  } clear{*own};
  own->finish();
  return graph;
}

void Recorder::check_joined() const {
  const Lane& first = *lanes_[0];
  for (size_t i = 1; i < lanes_.size(); ++i) {
    const uint32_t awaited = i < first.before.size() ? first.before[i] : 0;
    if (awaited >= lanes_[i]->calls) continue;
    throw Error(BP_INVALID_ARGUMENT,
                "bph_graph_end: stream {} of those that joined has {} recorded calls, and the first stream waited for "
                "{} of them; record an event on that stream and let the first stream wait for it before the end",
                i, lanes_[i]->calls, awaited);
  }
}

Recorder::Mark Recorder::start(Stream& stream, const Buffer* const* buffers, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) keep(buffers[i]);
  Lane& lane = *lanes_[stream.lane];
  lane.staging_used = 0;
  const Graph& graph = *graph_;
  return {graph.nodes_.size(),
          graph.transfers_.size(),
          graph.operands_.size(),
          graph.descriptors_.size(),
          patches_.size(),
          graph.fixed_.size(),
          graph.fixed_written_.size(),
          graph.enqueued_,
          stream.lane,
          lane.calls};
}

void Recorder::roll_back(const Mark& mark) noexcept {
  Graph& graph = *graph_;
  graph.nodes_.resize(mark.nodes);
  graph.transfers_.resize(mark.transfers);
  graph.operands_.resize(mark.operands);
  while (graph.descriptors_.size() > mark.descriptors) graph.descriptors_.pop_back();
  patches_.resize(mark.patches);
  graph.fixed_.truncate(mark.fixed);
  graph.fixed_written_.truncate(mark.fixed_written);
  graph.enqueued_ = mark.enqueued;
  lanes_[mark.lane]->calls = mark.calls;
}

// Keeps the buffer's memory until the graph is released.
void Recorder::keep(const Buffer* buffer) {
  if (buffer == nullptr || buffer->plugin_buffer == nullptr || buffers_.contains(buffer)) return;
  graph_->buffers_.reserve(graph_->buffers_.size() + 1);
  buffers_.insert(buffer);
  auto* held = const_cast<Buffer*>(buffer);
  held->hold();
  graph_->buffers_.push_back(held);
}

GraphNode& Recorder::add_node(Stream& stream, GraphNode::Kind kind, size_t at) {
  GraphNode& node = graph_->nodes_.emplace_back();
  node.kind = kind;
  node.lane = stream.lane;
  node.at = static_cast<uint32_t>(at);
  return node;
}

// Records that work uses a range. `place` and `index` identify the operand or transfer that refers
// to the range.
void Recorder::use(const Range& range, bool written, Place place, size_t index) {
  Graph& graph = *graph_;
  for (size_t i = 0; i < graph.bindings_.size(); ++i) {
    const Binding& binding = graph.bindings_[i];
    if (!binding.range.overlaps(range)) continue;
    if (!binding.range.contains(range)) {
      throw Error(BP_INVALID_ARGUMENT,
                  "bytes {} to {} of a buffer are partly inside binding {}, which has bytes {} to {}; a recorded call "
                  "uses memory inside one binding or outside all of them",
                  range.begin, range.end, i, binding.range.begin, binding.range.end);
    }
    return patches_.push_back({place, written, 0, static_cast<uint32_t>(index), static_cast<uint32_t>(i), range.begin});
  }
  graph.fixed_.add(range);
  if (written) graph.fixed_written_.add(range);
}

void Recorder::use(const bp_tensor_desc& view, const bp_operand& operand, bool written, size_t index) {
  if (operand.buffer == nullptr) return;
  for (const auto& lane : lanes_) {
    if (operand.buffer == tagged(lane->temporary_tag) || operand.buffer == tagged(lane->staging_tag)) return;
  }
  rules::Extent extent;
  if (!extent_of(view, dtype_bytes(view.dtype), &extent) || extent.hi == 0) return;
  const Range range = {operand.buffer, operand.offset + static_cast<uint64_t>(extent.lo),
                       operand.offset + static_cast<uint64_t>(extent.hi)};
  const size_t before = patches_.size();
  use(range, written, Place::operand, index);
  // A patch stores the offset of element 0, which may follow the first byte of the view.
  if (patches_.size() == before) return;
  patches_.back().delta = operand.offset;
  patches_.back().need_log2 = view.alignment_log2;
}

void Recorder::execute(Stream& stream, const PlanEntry& entry, const bp_op_desc& desc, const bp_operand* inputs,
                       const bp_operand* outputs, const bp_operand* scalars) {
  Graph& graph = *graph_;
  if (!entries_.contains(&entry)) {
    graph.entries_.reserve(graph.entries_.size() + 1);
    entries_.insert(&entry);
    graph.entries_.push_back(Ref<PlanEntry>(const_cast<PlanEntry*>(&entry)));
  }
  const bp_op_desc* kept = &entry.desc;
  if (&desc != kept) {
    Graph::Descriptor& copy = graph.descriptors_.emplace_back();
    copy.desc = desc;
    std::copy_n(desc.inputs, desc.input_count, copy.views);
    std::copy_n(desc.outputs, desc.output_count, copy.views + desc.input_count);
    copy.desc.inputs = copy.views;
    copy.desc.outputs = copy.views + desc.input_count;
    kept = &copy.desc;
  }
  Lane& lane = *lanes_[stream.lane];
  const size_t first = graph.operands_.size();
  graph.operands_.insert(graph.operands_.end(), inputs, inputs + desc.input_count);
  graph.operands_.insert(graph.operands_.end(), outputs, outputs + desc.output_count);
  graph.operands_.insert(graph.operands_.end(), scalars, scalars + desc.scalar_count);
  for (uint32_t i = 0; i < desc.input_count; ++i) use(desc.inputs[i], inputs[i], false, first + i);
  for (uint32_t i = 0; i < desc.output_count; ++i) {
    use(desc.outputs[i], outputs[i], true, first + desc.input_count + i);
  }
  bp_tensor_desc scalar = {};
  scalar.dtype = static_cast<uint16_t>(rules::scalar_dtype(*entry.row, desc));
  for (uint32_t i = 0; i < desc.scalar_count; ++i) {
    use(scalar, scalars[i], false, first + desc.input_count + desc.output_count + i);
  }
  GraphNode& node = add_node(stream, GraphNode::Kind::execute, first);
  node.plan = entry.plan->handle;
  node.execution.struct_size = sizeof(node.execution);
  node.execution.desc = kept;
  node.execution.workspace_bytes = entry.workspace_bytes;
  if (entry.workspace_bytes != 0) {
    node.execution.workspace = tagged(lane.workspace_tag);
    lane.workspace_bytes = std::max(lane.workspace_bytes, entry.workspace_bytes);
  }
  ++lane.calls;
  ++graph.enqueued_;
}

void Recorder::add_transfer(Stream& stream, GraphNode::Kind kind, const GraphTransfer& transfer) {
  Graph& graph = *graph_;
  const size_t index = graph.transfers_.size();
  graph.transfers_.push_back(transfer);
  for (const bool written : {true, false}) {
    const bp_operand& side = written ? transfer.dst : transfer.src;
    if (side.buffer == nullptr) continue;
    use({side.buffer, side.offset, side.offset + transfer.bytes}, written, written ? Place::destination : Place::source,
        index);
  }
  add_node(stream, kind, index);
  ++lanes_[stream.lane]->calls;
  ++graph.enqueued_;
}

void Recorder::copy(Stream& stream, Buffer& dst, uint64_t dst_offset, Buffer& src, uint64_t src_offset,
                    uint64_t bytes) {
  const Buffer* const used[] = {&dst, &src};
  record_call(stream, used, 2, [&] {
    GraphTransfer transfer;
    transfer.dst = {dst.plugin_buffer, dst.plugin_offset + dst_offset, 0};
    transfer.src = {src.plugin_buffer, src.plugin_offset + src_offset, 0};
    transfer.bytes = bytes;
    add_transfer(stream, GraphNode::Kind::copy, transfer);
  });
}

void Recorder::copy_in(Stream& stream, Buffer& dst, uint64_t dst_offset, const void* src, uint64_t bytes) {
  const Buffer* const used = &dst;
  record_call(stream, &used, 1, [&] {
    GraphTransfer transfer;
    transfer.dst = {dst.plugin_buffer, dst.plugin_offset + dst_offset, 0};
    transfer.host_src = src;
    transfer.bytes = bytes;
    add_transfer(stream, GraphNode::Kind::copy_in, transfer);
  });
}

void Recorder::copy_out(Stream& stream, void* dst, Buffer& src, uint64_t src_offset, uint64_t bytes) {
  const Buffer* const used = &src;
  record_call(stream, &used, 1, [&] {
    GraphTransfer transfer;
    transfer.src = {src.plugin_buffer, src.plugin_offset + src_offset, 0};
    transfer.host_dst = dst;
    transfer.bytes = bytes;
    add_transfer(stream, GraphNode::Kind::copy_out, transfer);
  });
}

Span Recorder::temporaries(Stream& stream, uint64_t bytes) {
  Lane& lane = *lanes_[stream.lane];
  lane.temporary_bytes = std::max(lane.temporary_bytes, bytes);
  return {tagged(lane.temporary_tag), 0, bytes, nullptr};
}

bp_operand Recorder::stage(Stream& stream, uint64_t bytes) {
  Lane& lane = *lanes_[stream.lane];
  const uint64_t offset = lane.staging_used;
  lane.staging_used = aligned(offset + bytes, stream.device->full_alignment());
  lane.staging_bytes = std::max(lane.staging_bytes, lane.staging_used);
  return {tagged(lane.staging_tag), offset, 0};
}

uint32_t Recorder::add_point(Stream& stream) {
  const auto point = static_cast<uint32_t>(points_.size());
  Lane& lane = *lanes_[stream.lane];
  Clock clock = lane.before;
  clock.resize(std::max<size_t>(clock.size(), stream.lane + 1));
  clock[stream.lane] = lane.calls;
  points_.reserve(points_.size() + 1);
  add_node(stream, GraphNode::Kind::point, point);
  points_.push_back(std::move(clock));
  return point;
}

void Recorder::wait_for(Stream& stream, uint32_t point) {
  constexpr const char* function = "bph_stream_wait_event";
  if (!graph_) {
    throw Error(BP_INVALID_ARGUMENT,
                "{}: the event was last recorded in a graph whose recording has ended, so no stream reaches it; record "
                "the event again",
                function);
  }
  if (stream.device.get() != graph_->device.get() || (stream.recorder != nullptr && stream.recorder != this)) {
    throw Error(BP_INVALID_ARGUMENT,
                "{}: the event belongs to the recording of another graph; end that recording first", function);
  }
  if (stream.recorder == nullptr) add_lane(stream);
  Lane& lane = *lanes_[stream.lane];
  const Clock& clock = points_[point];
  lane.before.resize(std::max(lane.before.size(), clock.size()));
  add_node(stream, GraphNode::Kind::wait, point);
  for (size_t i = 0; i < clock.size(); ++i) lane.before[i] = std::max(lane.before[i], clock[i]);
}

// Allocates the temporaries and the workspace of each lane, and stores them in the operands.
void Recorder::allocate_lanes() {
  Graph& graph = *graph_;
  const uint64_t alignment = std::max<uint64_t>(graph.device->full_alignment(), graph.device->info.alignment);
  for (const auto& lane : lanes_) {
    const uint64_t staging = aligned(lane->temporary_bytes, alignment);
    const uint64_t workspace = aligned(staging + lane->staging_bytes, alignment);
    const uint64_t bytes = workspace + lane->workspace_bytes;
    if (bytes == 0) continue;
    graph.spans_.reserve(graph.spans_.size() + 1);
    const Span span = graph.device->allocator.allocate(BP_MEMORY_DEVICE, bytes, alignment, nullptr);
    graph.spans_.push_back(span);
    graph.span_bytes_ += span.bytes;
    const auto place = [&](bp_buffer*& buffer, uint64_t& offset) {
      if (buffer == tagged(lane->temporary_tag)) {
        offset += span.offset;
      } else if (buffer == tagged(lane->staging_tag)) {
        offset += span.offset + staging;
      } else if (buffer == tagged(lane->workspace_tag)) {
        offset += span.offset + workspace;
      } else {
        return;
      }
      buffer = span.buffer;
    };
    for (bp_operand& operand : graph.operands_) place(operand.buffer, operand.offset);
    for (GraphNode& node : graph.nodes_) place(node.execution.workspace, node.execution.workspace_offset);
  }
}

void Recorder::finish() {
  Graph& graph = *graph_;
  graph.lanes_ = static_cast<uint32_t>(lanes_.size());
  graph.points_ = static_cast<uint32_t>(points_.size());
  allocate_lanes();
  for (GraphNode& node : graph.nodes_) {
    if (node.kind != GraphNode::Kind::execute) continue;
    const bp_operand* first = graph.operands_.data() + node.at;
    node.execution.inputs = first;
    node.execution.outputs = first + node.execution.desc->input_count;
    node.execution.scalars = node.execution.outputs + node.execution.desc->output_count;
  }
  std::stable_sort(patches_.begin(), patches_.end(),
                   [](const PatchDraft& a, const PatchDraft& b) { return a.binding < b.binding; });
  for (const PatchDraft& draft : patches_) {
    bp_operand* operand = graph.operands_.data() + draft.index;
    if (draft.place != Place::operand) {
      GraphTransfer& transfer = graph.transfers_[draft.index];
      operand = draft.place == Place::source ? &transfer.src : &transfer.dst;
    }
    Binding& binding = graph.bindings_[draft.binding];
    binding.written |= draft.written;
    binding.need_log2 = std::max(binding.need_log2, draft.need_log2);
    graph.patches_.push_back({operand, draft.binding, draft.delta - binding.range.begin});
  }
  graph.fixed_.close();
  graph.fixed_written_.close();
  if ((flags_ & BPH_GRAPH_NO_NATIVE) == 0) graph.native_ = NativeGraph::capture(graph);
}

}  // namespace backplane::core
