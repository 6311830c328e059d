// SPDX-License-Identifier: Apache-2.0
// Captures a recording in the plugin's bp.graph, and launches the plugin's graph.
#include "graph/native_graph.hpp"

#include "base/error.hpp"
#include "graph/graph.hpp"
#include "loading/interfaces.hpp"
#include "loading/plugin_call.hpp"

namespace backplane::core {

namespace {

bp_graph_binding plugin_binding(const Range& range) { return {range.buffer, range.begin, range.end - range.begin}; }

// The plugin's streams and events of one capture. The destructor destroys them after the capture
// has ended.
class CaptureObjects {
 public:
  explicit CaptureObjects(const Device& device) : device_(device) {}
  CaptureObjects(const CaptureObjects&) = delete;
  CaptureObjects& operator=(const CaptureObjects&) = delete;
  ~CaptureObjects() {
    for (bp_event* event : events_) device_.api->event_destroy(device_.handle, event);
    for (bp_stream* stream : streams_) device_.api->stream_destroy(device_.handle, stream);
  }
  void create(uint32_t lanes, uint32_t points) {
    streams_.reserve(lanes);
    events_.reserve(points);
    bp_stream_desc desc = {};
    desc.struct_size = sizeof(desc);
    for (uint32_t i = 0; i < lanes; ++i) {
      bp_error error = fresh_error();
      bp_stream* stream = nullptr;
      const bp_status status = device_.api->stream_create(device_.handle, &desc, &stream, &error);
      streams_.push_back(created(device_, "stream_create", status, error, stream));
    }
    for (uint32_t i = 0; i < points; ++i) {
      bp_error error = fresh_error();
      bp_event* event = nullptr;
      const bp_status status = device_.api->event_create(device_.handle, 0, &event, &error);
      events_.push_back(created(device_, "event_create", status, error, event));
    }
  }
  bp_stream* stream(uint32_t lane) const { return streams_[lane]; }
  bp_event* event(uint32_t point) const { return events_[point]; }

 private:
  const Device& device_;
  std::vector<bp_stream*> streams_;
  std::vector<bp_event*> events_;
};

}  // namespace

std::unique_ptr<NativeGraph> NativeGraph::capture(const Graph& graph) {
  const Device& device = *graph.device;
  const Plugin& plugin = *device.plugin;
  const void* table = plugin.get_interface(device.handle, BP_INTERFACE_GRAPH, 1);
  const auto api = known_interface<bp_graph_api>(table, plugin.instance->abi_version);
  if (api.graph_begin == nullptr || api.graph_end == nullptr || api.graph_launch == nullptr ||
      api.graph_destroy == nullptr)
    return nullptr;

  std::unique_ptr<NativeGraph> made(new NativeGraph(device, api));
  for (const Binding& binding : graph.bindings_) made->bindings_.push_back(plugin_binding(binding.range));
  CaptureObjects objects(device);
  objects.create(graph.lanes_, graph.points_);
  bp_graph_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.bindings = made->bindings_.data();
  desc.binding_count = static_cast<uint32_t>(made->bindings_.size());
  bp_error error = fresh_error();
  const bp_status begun = api.graph_begin(device.handle, objects.stream(0), &desc, &error);
  if (begun == BP_UNSUPPORTED) return nullptr;
  check(device, "graph_begin", begun, error);

  bp_status status = BP_OK;
  for (const GraphNode& node : graph.nodes_) {
    bp_stream* const stream = objects.stream(node.lane);
    if (node.kind == GraphNode::Kind::point) {
      status = device.api->event_record(device.handle, objects.event(node.at), stream, &error);
    } else if (node.kind == GraphNode::Kind::wait) {
      status = device.api->stream_wait_event(device.handle, stream, objects.event(node.at), &error);
    } else {
      status = graph.call(*device.api, device.handle, stream, node, &error);
    }
    if (status != BP_OK) break;
  }
  bp_graph_info info = {};
  info.struct_size = sizeof(info);
  bp_error end_error = fresh_error();
  const bp_status ended = api.graph_end(device.handle, objects.stream(0), &made->handle_, &info, &end_error);
  check(device, "a call that a graph captures", status, error);
  if (ended == BP_UNSUPPORTED) return nullptr;
  made->handle_ = created(device, "graph_end", ended, end_error, made->handle_);
  made->device_bytes_ = info.device_bytes;
  return made;
}

NativeGraph::~NativeGraph() {
  if (handle_ != nullptr) api_.graph_destroy(device_.handle, handle_);
}

void NativeGraph::launch(Stream& stream, const std::vector<Range>* ranges) {
  uint32_t count = 0;
  if (ranges != nullptr) {
    for (const Range& range : *ranges) bindings_[count++] = plugin_binding(range);
  }
  bp_error error = fresh_error();
  const bp_status status = api_.graph_launch(stream.device_handle, stream.handle, handle_,
                                             count == 0 ? nullptr : bindings_.data(), count, &error);
  stream.count_enqueue(status);
  check(device_, "graph_launch", status, error);
}

}  // namespace backplane::core
