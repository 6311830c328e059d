// SPDX-License-Identifier: Apache-2.0
// The layer `trace`: records every call to a device's slots as an event in a file.
#include "layers/trace/trace.hpp"

#include <backplane/backplane.h>

#include <memory>
#include <new>
#include <string_view>

#include "base/error.hpp"
#include "base/work_scope.hpp"
#include "layers/splice.hpp"
#include "layers/trace/device.hpp"

namespace backplane::core::layers {

namespace {

TracePlugin& of(const bp_plugin* plugin) { return static_cast<TracePlugin&>(wrapped(plugin)); }
TraceDevice& of(bp_device* device) { return static_cast<TraceDevice&>(*reinterpret_cast<WrappedDevice*>(device)); }

constexpr const char* category_of(Slot slot) {
  switch (slot) {
    case Slot::plan_execute:
      return "op";
    case Slot::plan_create:
    case Slot::plan_workspace:
    case Slot::pack_create:
      return "plan";
    case Slot::graph_begin:
    case Slot::graph_end:
    case Slot::graph_launch:
      return "graph";
    case Slot::copy:
    case Slot::copy_in:
    case Slot::copy_out:
    case Slot::peer_copy:
    case Slot::pack_execute:
      return "copy";
    case Slot::buffer_create:
    case Slot::buffer_map:
    case Slot::buffer_address:
    case Slot::memory_info:
    case Slot::import_memory:
    case Slot::buffer_native:
    case Slot::buffer_wrap:
    case Slot::peer_map:
    case Slot::buffer_create_external:
    case Slot::buffer_export:
    case Slot::buffer_import:
      return "memory";
    default:
      return "order";
  }
}

// Finds the stream and the error record among a slot's arguments. The stream selects the event's
// track.
struct Arguments {
  bp_stream* stream = nullptr;
  bp_error* error = nullptr;
  void see(bp_stream* argument) { stream = argument; }
  void see(bp_error* argument) { error = argument; }
  template <class T>
  void see(const T&) {}
};

template <Slot>
struct At {};

// Adds the arguments of a call to the call's trace event.
template <Slot slot, class... Args>
void add_request(At<slot>, TraceEvent&, const Args&...) {}

void add_operator(TraceEvent& event, const bp_op_desc& desc) {
  event.arg("inputs", desc.inputs, desc.input_count).arg("outputs", desc.outputs, desc.output_count);
}
void add_request(At<Slot::plan_execute>, TraceEvent& event, bp_stream*, bp_plan*, const bp_execution* execution,
                 bp_error*) {
  add_operator(event, *execution->desc);
}
void add_request(At<Slot::plan_create>, TraceEvent& event, const bp_op_desc* desc, bp_plan** out, bp_plan_info*,
                 bp_error*) {
  char room[32];
  event.arg("operator", op_name(desc->op, room)).arg("made", out != nullptr ? "plan" : "answer only");
  add_operator(event, *desc);
}
void add_request(At<Slot::pack_create>, TraceEvent& event, const bp_op_desc* desc, uint32_t input, bp_pack** out,
                 bp_pack_info*, bp_error*) {
  char room[32];
  event.arg("operator", op_name(desc->op, room)).arg("input", uint64_t{input});
  event.arg("made", out != nullptr ? "pack" : "answer only");
  add_operator(event, *desc);
}
void add_request(At<Slot::buffer_create>, TraceEvent& event, const bp_buffer_desc* desc, bp_buffer**, bp_error*) {
  event.arg("kind", uint64_t{desc->kind}).arg("bytes", desc->bytes);
}
void add_request(At<Slot::import_memory>, TraceEvent& event, const bp_import_desc* desc, uint32_t*, bp_buffer**,
                 bp_error*) {
  event.arg("bytes", desc->bytes);
}
void add_request(At<Slot::buffer_wrap>, TraceEvent& event, const bp_native_handle* native, uint32_t*, bp_buffer**,
                 bp_error*) {
  event.arg("bytes", native->bytes);
}
void add_request(At<Slot::graph_launch>, TraceEvent& event, bp_stream*, bp_graph*, const bp_graph_binding*,
                 uint32_t count, bp_error*) {
  event.arg("bindings", uint64_t{count});
}
void add_request(At<Slot::buffer_create_external>, TraceEvent& event, const bp_buffer_desc* desc, const char*,
                 bp_buffer**, bp_error*) {
  event.arg("kind", uint64_t{desc->kind}).arg("bytes", desc->bytes);
}
void add_request(At<Slot::buffer_import>, TraceEvent& event, const bp_external_handle* handle, uint32_t*, bp_buffer**,
                 bp_error*) {
  event.arg("bytes", handle->bytes);
}
void add_request(At<Slot::peer_copy>, TraceEvent& event, bp_stream*, bp_device*, bp_buffer*, uint64_t, bp_device*,
                 bp_buffer*, uint64_t, uint64_t bytes, bp_error*) {
  event.arg("bytes", bytes);
}
void add_request(At<Slot::semaphore_signal>, TraceEvent& event, bp_stream*, bp_semaphore*, uint64_t value, bp_error*) {
  event.arg("value", value);
}
void add_request(At<Slot::semaphore_wait>, TraceEvent& event, bp_stream*, bp_semaphore*, uint64_t value, bp_error*) {
  event.arg("value", value);
}
void add_request(At<Slot::copy>, TraceEvent& event, bp_stream*, bp_buffer*, uint64_t, bp_buffer*, uint64_t,
                 uint64_t bytes, bp_error*) {
  event.arg("bytes", bytes);
}
void add_request(At<Slot::copy_in>, TraceEvent& event, bp_stream*, bp_buffer*, uint64_t, const void*, uint64_t bytes,
                 bp_error*) {
  event.arg("bytes", bytes);
}
void add_request(At<Slot::copy_out>, TraceEvent& event, bp_stream*, void*, bp_buffer*, uint64_t, uint64_t bytes,
                 bp_error*) {
  event.arg("bytes", bytes);
}

// Adds the results of a call that returned OK. `begin` is the start time of the call.
template <Slot slot, class... Args>
void add_result(At<slot>, TraceEvent&, TraceDevice&, Track, double, const Args&...) {}

void add_result(At<Slot::plan_execute>, TraceEvent& event, TraceDevice& device, Track, double, bp_stream*,
                bp_plan* plan, const bp_execution* execution, bp_error*) {
  event.arg("plan", device.first_execution(plan) ? "miss" : "hit").arg("bytes", bytes_moved(*execution->desc));
  if (execution->workspace_bytes != 0) event.arg("workspace_bytes", execution->workspace_bytes);
}

void add_result(At<Slot::plan_create>, TraceEvent& event, TraceDevice&, Track, double, const bp_op_desc*, bp_plan**,
                bp_plan_info* info, bp_error*) {
  if (info == nullptr) return;
  event.arg("any_size", uint64_t{(info->flags & BP_PLAN_ANY_SIZE) != 0}).arg("workspace_bytes", info->workspace_bytes);
  if (info->stage_inputs != 0) event.arg("stage_inputs", uint64_t{info->stage_inputs});
  if (info->stage_outputs != 0) event.arg("stage_outputs", uint64_t{info->stage_outputs});
}

void add_result(At<Slot::buffer_create>, TraceEvent&, TraceDevice& device, Track, double, const bp_buffer_desc* desc,
                bp_buffer** out, bp_error*) {
  device.add_buffer(*out, desc->kind, desc->bytes);
}

void add_result(At<Slot::buffer_create_external>, TraceEvent&, TraceDevice& device, Track, double,
                const bp_buffer_desc* desc, const char*, bp_buffer** out, bp_error*) {
  device.add_buffer(*out, desc->kind, desc->bytes);
}

void add_result(At<Slot::stream_create>, TraceEvent& event, TraceDevice& device, Track, double, const bp_stream_desc*,
                bp_stream** out, bp_error*) {
  event.arg("stream", uint64_t{device.stream_track(*out).line});
}

void add_result(At<Slot::stream_wrap>, TraceEvent& event, TraceDevice& device, Track, double, const bp_native_handle*,
                bp_stream** out, bp_error*) {
  event.arg("stream", uint64_t{device.stream_track(*out).line});
}

void add_result(At<Slot::pack_create>, TraceEvent& event, TraceDevice&, Track, double, const bp_op_desc*, uint32_t,
                bp_pack**, bp_pack_info* info, bp_error*) {
  if (info != nullptr) event.arg("bytes", info->bytes);
}

void add_result(At<Slot::graph_end>, TraceEvent& event, TraceDevice&, Track, double, bp_stream*, bp_graph**,
                bp_graph_info* info, bp_error*) {
  if (info != nullptr) event.arg("nodes", info->nodes).arg("device_bytes", info->device_bytes);
}

// Adds one end of an arrow. The arrow leads from an event_record call to a call that waits for the
// recorded event.
void arrow(char end, TraceDevice& device, Track track, double at, uint64_t flow) {
  TraceEvent event(end, "event", track);
  device.owner.add(event.category("order").time(at).flow(flow));
}
void arrive(TraceDevice& device, Track track, double at, const bp_event* event) {
  const uint64_t flow = device.record_of(event);
  if (flow != 0) arrow('t', device, track, at, flow);
}
void add_result(At<Slot::event_record>, TraceEvent&, TraceDevice& device, Track track, double begin, bp_event* event,
                bp_stream*, bp_error*) {
  const uint64_t flow = device.owner.file.new_flow();
  device.set_record(event, flow);
  arrow('s', device, track, begin, flow);
}
void add_result(At<Slot::stream_wait_event>, TraceEvent&, TraceDevice& device, Track track, double begin, bp_stream*,
                bp_event* event, bp_error*) {
  arrive(device, track, begin, event);
}
void add_result(At<Slot::peer_wait_event>, TraceEvent&, TraceDevice& device, Track track, double begin, bp_stream*,
                bp_device* peer, bp_event* event, bp_error*) {
  const uint64_t flow = of(peer).record_of(event);
  if (flow != 0) arrow('t', device, track, begin, flow);
}
void add_result(At<Slot::event_wait>, TraceEvent&, TraceDevice& device, Track track, double begin, bp_event* event,
                uint64_t, bp_error*) {
  arrive(device, track, begin, event);
}

// Returns the name of the trace event: the operator's name for an execution, the slot's name for
// any other call.
template <class... Args>
std::string_view name_of(char (&)[32], Slot slot, const Args&...) {
  return slot_name(slot);
}
std::string_view name_of(char (&room)[32], Slot, bp_stream*, bp_plan*, const bp_execution* execution, bp_error*) {
  return op_name(execution->desc->op, room);
}

// Writes the trace event of a call. If memory runs out, the trace event is lost.
template <Slot slot, class... Args>
void note(TraceDevice& device, double begin, double end, bp_status status, const Args&... args) noexcept {
  try {
    Arguments found;
    (found.see(args), ...);
    const Track track = found.stream != nullptr ? device.stream_track(found.stream) : device.thread_track();
    char room[32];
    TraceEvent event('X', name_of(room, slot, args...), track);
    event.category(category_of(slot)).span(begin, end);
    add_request(At<slot>(), event, args...);
    if (status == BP_OK) {
      add_result(At<slot>(), event, device, track, begin, args...);
    } else {
      event.arg("status", bph_status_name(status));
    }
    if (found.stream != nullptr) event.arg("thread", uint64_t{TraceFile::thread_number()});
    if (work_cause.why != nullptr) event.arg(work_cause.why, work_cause.op);
    device.owner.add(event);
  } catch (...) {
    device.owner.file.lose_one();
  }
}

template <Slot slot, auto member>
struct Shim;
template <Slot slot, class Table, class... Args, bp_status (*Table::*member)(bp_device*, Args...)>
struct Shim<slot, member> {
  static bp_status call(bp_device* handle, Args... args) {
    TraceDevice& device = of(handle);
    Arguments found;
    (found.see(args), ...);
    const double begin = device.owner.file.now();
    const bp_status status = call_below(device.owner, device.inner, slot, member, found.error, args...);
    note<slot>(device, begin, device.owner.file.now(), status, args...);
    return status;
  }
};

constexpr const char* destroy_of(const bp_buffer*) { return "buffer_destroy"; }
constexpr const char* destroy_of(const bp_stream*) { return "stream_destroy"; }
constexpr const char* destroy_of(const bp_event*) { return "event_destroy"; }
constexpr const char* destroy_of(const bp_plan*) { return "plan_destroy"; }
constexpr const char* destroy_of(const bp_pack*) { return "pack_destroy"; }
constexpr const char* destroy_of(const bp_graph*) { return "graph_destroy"; }
constexpr const char* destroy_of(const bp_semaphore*) { return "semaphore_destroy"; }

template <auto member>
struct Destroy;
template <class Table, class Handle, void (*Table::*member)(bp_device*, Handle*)>
struct Destroy<member> {
  static void call(bp_device* handle, Handle* object) {
    TraceDevice& device = of(handle);
    try {
      // The plugin may return this handle for another object after the call, so the trace forgets
      // the object first.
      device.forget(object);
    } catch (...) {
      device.owner.file.lose_one();
    }
    const double begin = device.owner.file.now();
    if (const auto slot = slot_below(device.owner, device.inner, member); slot != nullptr) slot(device.inner, object);
    try {
      TraceEvent event('X', destroy_of(object), device.thread_track());
      device.owner.add(event.category("life").span(begin, device.owner.file.now()));
    } catch (...) {
      device.owner.file.lose_one();
    }
  }
};

void close(bp_device* handle) {
  const std::unique_ptr<TraceDevice> device(&of(handle));
  device->owner.next.close(device->inner);
  device->owner.file.flush(*device->owner.host);
}

bp_status device_count(const bp_plugin* plugin, uint32_t* out, bp_error* error) {
  return of(plugin).inner->device_count(of(plugin).inner, out, error);
}

bp_status device_info(const bp_plugin* plugin, uint32_t index, bp_device_info* out, bp_error* error) {
  return of(plugin).inner->device_info(of(plugin).inner, index, out, error);
}

bp_status device_open(const bp_plugin* plugin, uint32_t index, const bp_device_desc* desc, bp_device** out,
                      bp_error* error) {
  TracePlugin& own = of(plugin);
  // The plugin itself refuses a null `out`.
  if (out == nullptr) return own.inner->device_open(own.inner, index, desc, out, error);
  *out = nullptr;
  std::unique_ptr<TraceDevice> device;
  const bp_status made =
      guard(error, [&] { device = std::make_unique<TraceDevice>(own, fmt::format("{}:{}", own.table.name, index)); });
  if (made != BP_OK) return made;
  const bp_status status = own.inner->device_open(own.inner, index, desc, &device->inner, error);
  if (status != BP_OK || device->inner == nullptr) return status;
  *out = reinterpret_cast<bp_device*>(static_cast<WrappedDevice*>(device.release()));
  return BP_OK;
}

void shutdown(const bp_plugin* plugin) {
  const std::unique_ptr<TracePlugin> own(&of(plugin));
  own->inner->shutdown(own->inner);
  own->file.flush(*own->host);
}

}  // namespace

const bp_plugin* trace(const bp_plugin* inner, const bp_host* host, TraceFile& file) {
  auto made = std::make_unique<TracePlugin>(inner, host, file);
  bp_plugin& table = made->table;
  table.device_count = device_count;
  table.device_info = device_info;
  table.device_open = device_open;
  table.shutdown = shutdown;
  made->api.close = close;
  splice_device<Shim, Destroy>(*made);
  return &made.release()->table;
}

}  // namespace backplane::core::layers
