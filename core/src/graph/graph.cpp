// SPDX-License-Identifier: Apache-2.0
// Launches graphs, and releases their memory.
#include "graph/graph.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "graph/native_graph.hpp"
#include "loading/plugin_call.hpp"

namespace backplane::core {

namespace {
constexpr const char* kFunction = "bph_graph_launch";
}  // namespace

Graph::Graph(Ref<Device> owner, std::vector<Binding> bindings)
    : device(std::move(owner)), bindings_(std::move(bindings)), order_(bindings_.size()) {
  for (const Binding& binding : bindings_) current_.push_back(binding.range);
  wanted_ = current_;
  check_distinct("bph_graph_begin", current_, order_);
}

Graph::~Graph() {
  native_.reset();
  for (const Span& span : spans_) device->allocator.release(span);
  for (Buffer* buffer : buffers_) buffer->end_hold();
}

bph_graph_info Graph::info() const noexcept {
  bph_graph_info info = {};
  info.flags = native_ ? BPH_GRAPH_NATIVE : 0;
  info.nodes = enqueued_;
  info.device_bytes = span_bytes_ + (native_ ? native_->device_bytes() : 0);
  return info;
}

// Computes the ranges of this launch. Throws unless they may replace the recorded ranges.
void Graph::resolve(const bph_graph_binding* given, uint32_t count) {
  if (count == 0) {
    for (size_t i = 0; i < bindings_.size(); ++i) wanted_[i] = bindings_[i].range;
    return;
  }
  if (count != bindings_.size() || given == nullptr) {
    throw Error(BP_INVALID_ARGUMENT, "{}: {} bindings {}, the graph has {}; pass 0 or one for each", kFunction, count,
                given == nullptr ? "at a null address" : "are given", bindings_.size());
  }
  bool replaces = false;
  for (uint32_t i = 0; i < count; ++i) {
    const Binding& recorded = bindings_[i];
    const Binding binding = resolve_binding(kFunction, *device, given[i], i);
    const uint64_t bytes = recorded.range.end - recorded.range.begin;
    if (given[i].bytes != bytes || binding.kind != recorded.kind || binding.alignment_log2 < recorded.alignment_log2) {
      throw Error(BP_INVALID_ARGUMENT,
                  "{}: binding {} has {} bytes of memory of kind {} aligned to {}, and {} bytes of kind {} aligned to "
                  "{} were recorded; pass a range of this size and kind, and at least this alignment",
                  kFunction, i, given[i].bytes, binding.kind, uint64_t{1} << binding.alignment_log2, bytes,
                  recorded.kind, uint64_t{1} << recorded.alignment_log2);
    }
    // The plan of an operand inside the range may rely on an alignment that the start of the range lacks.
    const uint64_t moved = (binding.range.begin ^ recorded.range.begin) & ((uint64_t{1} << recorded.need_log2) - 1);
    if (recorded.need_log2 > recorded.alignment_log2 &&
        (binding.memory_alignment_log2 < recorded.need_log2 || moved != 0)) {
      throw Error(
          BP_INVALID_ARGUMENT,
          "{}: binding {} moves a recorded operand that is aligned to {} bytes to an address that is not; pass a "
          "range at the same offset from a multiple of {} bytes as the recorded range",
          kFunction, i, uint64_t{1} << recorded.need_log2, uint64_t{1} << recorded.need_log2);
    }
    if (recorded.written && binding.read_only) {
      throw Error(BP_INVALID_ARGUMENT,
                  "{}: binding {} is read-only memory, and the graph writes to it; pass other memory", kFunction, i);
    }
    wanted_[i] = binding.range;
    replaces |= binding.range != recorded.range;
  }
  if (!replaces) return;
  check_distinct(kFunction, wanted_, order_);
  check_replacements();
}

// Throws if a range of this launch shares bytes with the graph's other memory, and recorded work
// writes to either of them.
void Graph::check_replacements() const {
  for (size_t i = 0; i < bindings_.size(); ++i) {
    const bool written = bindings_[i].written;
    if (wanted_[i] == bindings_[i].range || !(written ? fixed_ : fixed_written_).overlaps(wanted_[i])) continue;
    throw Error(BP_INVALID_ARGUMENT,
                "{}: binding {} overlaps memory that the graph {} without a binding; pass other "
                "memory",
                kFunction, i, written ? "uses" : "writes");
  }
}

// Stores the ranges of this launch in the operands.
void Graph::apply() noexcept {
  if (wanted_ == current_) return;
  for (const Patch& patch : patches_) {
    const Range& range = wanted_[patch.binding];
    patch.operand->buffer = range.buffer;
    patch.operand->offset = range.begin + patch.delta;
  }
  current_ = wanted_;
}

// Records in each buffer of the graph that the stream uses the buffer.
void Graph::record_use(Stream& stream) {
  const auto same = [&](const Ref<Timeline>& timeline) { return timeline.get() == stream.timeline.get(); };
  if (std::any_of(timelines_.begin(), timelines_.end(), same)) return;
  for (Buffer* buffer : buffers_) buffer->record(stream);
  std::erase_if(timelines_, [](const Ref<Timeline>& timeline) { return timeline->ended(); });
  timelines_.push_back(stream.timeline);
}

void Graph::launch(Stream& stream, const bph_graph_binding* given, uint32_t count) {
  if (stream.device.get() != device.get()) {
    throw Error(BP_INVALID_ARGUMENT, "{}: the graph is of {}, the stream of {}{}; use objects of one open device",
                kFunction, device->name, stream.device->name,
                device->name == stream.device->name ? " as opened another time" : "");
  }
  const StreamLock stream_lock(stream, kFunction);
  const std::lock_guard lock(mutex_);
  resolve(given, count);
  stream.begin_call();
  record_use(stream);
  if (native_) {
    native_->launch(stream, count == 0 ? nullptr : &wanted_);
  } else {
    apply();
    replay(stream);
  }
}

bp_status Graph::call(const bp_device_api& api, bp_device* handle, bp_stream* stream, const GraphNode& node,
                      bp_error* error) const {
  if (node.kind == GraphNode::Kind::execute) [[likely]]
    return api.plan_execute(handle, stream, node.plan, &node.execution, error);
  if (node.kind == GraphNode::Kind::point || node.kind == GraphNode::Kind::wait) return BP_OK;
  const GraphTransfer& copy = transfers_[node.at];
  const bp_operand &dst = copy.dst, &src = copy.src;
  if (node.kind == GraphNode::Kind::copy_in) {
    return api.copy_in(handle, stream, dst.buffer, dst.offset, copy.host_src, copy.bytes, error);
  }
  if (node.kind == GraphNode::Kind::copy_out) {
    return api.copy_out(handle, stream, copy.host_dst, src.buffer, src.offset, copy.bytes, error);
  }
  return api.copy(handle, stream, dst.buffer, dst.offset, src.buffer, src.offset, copy.bytes, error);
}

void Graph::replay(Stream& stream) const {
  const bp_device_api& api = *stream.api;
  bp_device* const handle = stream.device_handle;
  bp_stream* const plugin_stream = stream.handle;
  // Counts the launch before the loop makes the calls, because calls before a failed call remain enqueued.
  stream.count_enqueue();
  bp_error error = fresh_error();
  for (const GraphNode& node : nodes_) {
    const bp_status status = call(api, handle, plugin_stream, node, &error);
    if (status == BP_OK) [[likely]]
      continue;
    stream.note_failure(status);
    const std::string where = fmt::format("{}: node {} of the graph", device->name, &node - nodes_.data());
    const uint32_t op = node.kind == GraphNode::Kind::execute ? node.execution.desc->op : 0;
    throw Error::from_plugin(status, error, where.c_str()).with_op(op);
  }
}

}  // namespace backplane::core
