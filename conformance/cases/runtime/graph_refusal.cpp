// SPDX-License-Identifier: Apache-2.0
// Test cases for bp.graph: calls that the device must refuse, and the state of the device after a refusal.
#include "cases/runtime/cases.hpp"
#include "cases/runtime/graph.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"

namespace backplane::conformance {

namespace {

constexpr uint64_t kRefusalBytes = 16384;

// A graph of one copy, whose source and destination a launch may replace.
struct RefusalScene {
  explicit RefusalScene(Context& given)
      : context(given),
        device(given.device()),
        calls(given),
        stream(device),
        from(device, kRefusalBytes),
        to(device, kRefusalBytes),
        data(noise(given, kRefusalBytes)) {
    upload(from, data);
    upload(to, Bytes(kRefusalBytes, 0));
  }
  void copy(Stream& on) { on.copy(to.get(), 0, from.get(), 0, kRefusalBytes); }
  Bindings bindings() const { return {GraphCalls::whole(from), GraphCalls::whole(to)}; }
  void require_written(bool written, std::string_view what) {
    require_same(context, download<unsigned char>(to, kRefusalBytes), written ? data : Bytes(kRefusalBytes, 0), what);
  }

  Context& context;
  Device& device;
  GraphCalls calls;
  Stream stream;
  Buffer from, to;
  Bytes data;
  std::vector<Stream> joined;  // streams that capture until the end of the case
};

// Runs `attempt` during a capture. The device must refuse the call, and the capture must continue.
using Attempt = std::function<bp_status(RefusalScene&, ErrorRecord&)>;
void capture_refuses(Context& context, const char* slot, const Attempt& attempt) {
  RefusalScene scene(context);
  scene.calls.begin(scene.stream);
  ErrorRecord error;
  expect_status(attempt(scene, error), error, slot, {BP_INVALID_ARGUMENT});
  scene.copy(scene.stream);
  const Graph graph = scene.calls.end(scene.stream, 1);
  scene.stream.wait();
  scene.require_written(false, "memory that captured work would write");
  scene.calls.launch(scene.stream, graph);
  scene.stream.wait();
  scene.require_written(true, "memory of a graph, during whose capture a call was refused");
}

bp_status waits(RefusalScene& scene, ErrorRecord& error) {
  return scene.device->stream_wait(scene.device.get(), scene.stream.get(), 0, &error);
}
bp_status begins(RefusalScene& scene, ErrorRecord& error) {
  const bp_graph_desc desc = GraphCalls::describe({});
  return scene.calls.try_begin(scene.stream, &desc, error);
}
bp_status launches(RefusalScene& scene, ErrorRecord& error) {
  Stream other(scene.device);
  scene.calls.begin(other);
  const Graph graph = scene.calls.end(other, 0);
  return scene.calls.try_launch(scene.stream, graph, {}, error);
}
bp_status waits_for_outside(RefusalScene& scene, ErrorRecord& error) {
  Stream other(scene.device);
  Event event(scene.device);
  other.record(event.get());
  const bp_status status = scene.device->stream_wait_event(scene.device.get(), scene.stream.get(), event.get(), &error);
  other.wait();
  return status;
}
bp_status waits_for_another_capture(RefusalScene& scene, ErrorRecord& error) {
  Stream other(scene.device);
  Event event(scene.device);
  scene.calls.begin(other);
  other.record(event.get());
  const bp_status status = scene.device->stream_wait_event(scene.device.get(), scene.stream.get(), event.get(), &error);
  const Graph unused = scene.calls.end(other, 0);
  return status;
}
bp_status host_waits_for_point(RefusalScene& scene, ErrorRecord& error) {
  Event event(scene.device);
  scene.stream.record(event.get());
  return scene.device->event_wait(scene.device.get(), event.get(), 0, &error);
}
bp_status ends_without_result(RefusalScene& scene, ErrorRecord& error) {
  return scene.calls.api().graph_end(scene.device.get(), scene.stream.get(), nullptr, nullptr, &error);
}
bp_status ends_on_a_joined_stream(RefusalScene& scene, ErrorRecord& error) {
  Stream other(scene.device);
  Event fork(scene.device);
  scene.stream.record(fork.get());
  other.wait_event(fork.get());
  const bp_status status = scene.calls.try_end(other, error);
  scene.joined.push_back(std::move(other));
  return status;
}

// An event that was never recorded is treated as completed, so a capture may wait for it.
void waits_for_unrecorded_events(Context& context) {
  RefusalScene scene(context);
  Event event(scene.device);
  scene.calls.begin(scene.stream);
  scene.stream.wait_event(event.get());
  scene.copy(scene.stream);
  const Graph graph = scene.calls.end(scene.stream, 1);
  scene.calls.launch(scene.stream, graph);
  scene.stream.wait();
  scene.require_written(true, "memory of a graph");
}

// After a capture has ended, waits for an event that was recorded in the capture must fail, until
// the event is recorded again.
void events_end_with_the_capture(Context& context) {
  RefusalScene scene(context);
  Stream other(scene.device);
  Event event(scene.device);
  scene.calls.begin(scene.stream);
  scene.copy(scene.stream);
  scene.stream.record(event.get());
  const Graph graph = scene.calls.end(scene.stream, 1);
  scene.calls.launch(scene.stream, graph);
  scene.stream.wait();
  ErrorRecord error;
  expect_status(scene.device->event_wait(scene.device.get(), event.get(), 0, &error), error, "event_wait",
                {BP_INVALID_ARGUMENT});
  expect_status(scene.device->stream_wait_event(scene.device.get(), other.get(), event.get(), &error), error,
                "stream_wait_event", {BP_INVALID_ARGUMENT});
  scene.stream.record(event.get());
  other.wait_event(event.get());
  event.wait();
  other.wait();
}

// graph_end must fail if the first stream of the capture has not waited for all work of the streams
// that joined the capture.
void end_needs_joined_streams(Context& context) {
  RefusalScene scene(context);
  Stream other(scene.device);
  Event fork(scene.device), join(scene.device);
  scene.calls.begin(scene.stream);
  scene.stream.record(fork.get());
  other.wait_event(fork.get());
  other.record(join.get());
  scene.stream.wait_event(join.get());
  scene.copy(other);  // the first stream does not wait for this copy
  ErrorRecord error;
  expect_status(scene.calls.try_end(scene.stream, error), error, "graph_end", {BP_INVALID_ARGUMENT});
  scene.stream.wait();
  other.wait();
  scene.require_written(false, "memory of a capture that failed");
  scene.copy(other);
  other.wait();
  scene.require_written(true, "memory of work after a capture that failed");
  expect_status(scene.calls.try_end(scene.stream, error), error, "graph_end", {BP_INVALID_ARGUMENT});
}

void end_needs_a_capture(Context& context) {
  RefusalScene scene(context);
  ErrorRecord error;
  expect_status(scene.calls.try_end(scene.stream, error), error, "graph_end", {BP_INVALID_ARGUMENT});
  scene.copy(scene.stream);
  scene.stream.wait();
  scene.require_written(true, "memory after a refused graph_end");
}

// Changes the parameters of graph_begin so that the device must refuse the call. The stream must
// then execute calls as before.
using SpoilBegin = std::function<void(const RefusalScene&, bp_graph_desc&, Bindings&)>;
void begin_refuses(Context& context, const SpoilBegin& spoil, bp_status status) {
  RefusalScene scene(context);
  Bindings bindings = scene.bindings();
  bp_graph_desc desc = GraphCalls::describe(bindings);
  spoil(scene, desc, bindings);
  ErrorRecord error;
  expect_status(scene.calls.try_begin(scene.stream, &desc, error), error, "graph_begin", {status});
  scene.copy(scene.stream);
  scene.stream.wait();
  scene.require_written(true, "memory after a refused graph_begin");
}

// Changes the bindings of a launch so that the device must refuse the launch. A refused launch must
// execute nothing.
using SpoilLaunch = std::function<void(const RefusalScene&, Bindings&)>;
void launch_refuses(Context& context, const SpoilLaunch& spoil) {
  RefusalScene scene(context);
  scene.calls.begin(scene.stream, scene.bindings());
  scene.copy(scene.stream);
  const Graph graph = scene.calls.end(scene.stream, 1);
  Bindings bindings = scene.bindings();
  spoil(scene, bindings);
  ErrorRecord error;
  expect_status(scene.calls.try_launch(scene.stream, graph, bindings, error), error, "graph_launch",
                {BP_INVALID_ARGUMENT});
  scene.stream.wait();
  scene.require_written(false, "memory after a refused launch");
  scene.calls.launch(scene.stream, graph, scene.bindings());
  scene.stream.wait();
  scene.require_written(true, "memory after a launch");
}

void graph_slots_refuse_null(Context& context) {
  RefusalScene scene(context);
  const bp_graph_api& api = scene.calls.api();
  bp_device* const device = scene.device.get();
  ErrorRecord error;
  expect_status(scene.calls.try_begin(scene.stream, nullptr, error), error, "graph_begin", {BP_INVALID_ARGUMENT});
  const bp_graph_desc desc = GraphCalls::describe({});
  expect_status(api.graph_begin(device, nullptr, &desc, &error), error, "graph_begin", {BP_INVALID_ARGUMENT});
  expect_status(api.graph_launch(device, scene.stream.get(), nullptr, nullptr, 0, &error), error, "graph_launch",
                {BP_INVALID_ARGUMENT});
  scene.calls.begin(scene.stream);
  const Graph graph = scene.calls.end(scene.stream, 0);
  expect_status(api.graph_launch(device, nullptr, graph.get(), nullptr, 0, &error), error, "graph_launch",
                {BP_INVALID_ARGUMENT});
  expect_status(api.graph_launch(device, scene.stream.get(), graph.get(), nullptr, 1, &error), error, "graph_launch",
                {BP_INVALID_ARGUMENT});
  scene.stream.wait();
}

}  // namespace

void add_graph_refusal_cases(Catalogue& catalogue) {
  const auto add = [&](std::string what, std::string_view requirement, std::function<void(Context&)> run) {
    add_case(catalogue, "runtime.graph." + std::move(what), {requirement}, std::move(run), kGraphExtension);
    catalogue.back().since = kGraphSince;
  };
  const auto add_capture = [&](const char* what, const char* slot, Attempt attempt) {
    add(fmt::format("capture_refuses.{}", what), "BP-GRA-009",
        [=](Context& context) { capture_refuses(context, slot, attempt); });
  };
  add_capture("stream_wait", "stream_wait", waits);
  add_capture("begin", "graph_begin", begins);
  add_capture("launch", "graph_launch", launches);
  add_capture("event_of_no_capture", "stream_wait_event", waits_for_outside);
  add_capture("event_of_another_capture", "stream_wait_event", waits_for_another_capture);
  add_capture("event_wait", "event_wait", host_waits_for_point);
  add_capture("end_without_result", "graph_end", ends_without_result);
  add_capture("end_on_a_joined_stream", "graph_end", ends_on_a_joined_stream);
  add("waits_for_unrecorded_events", "BP-GRA-009", waits_for_unrecorded_events);
  add("events_end_with_the_capture", "BP-GRA-009", events_end_with_the_capture);
  add("end_needs_joined_streams", "BP-GRA-006", end_needs_joined_streams);
  add("end_needs_a_capture", "BP-GRA-010", end_needs_a_capture);
  add("slots_refuse_null", "BP-GRA-010", graph_slots_refuse_null);

  const auto add_begin = [&](const char* what, bp_status status, SpoilBegin spoil) {
    add(fmt::format("begin_refuses.{}", what), "BP-GRA-010",
        [=](Context& context) { begin_refuses(context, spoil, status); });
  };
  using Desc = bp_graph_desc&;
  add_begin("flag_1", BP_UNSUPPORTED, [](const RefusalScene&, Desc desc, Bindings&) { desc.flags = 1; });
  add_begin("reserved", BP_UNSUPPORTED, [](const RefusalScene&, Desc desc, Bindings&) { desc.reserved = 1; });
  add_begin("null_bindings", BP_INVALID_ARGUMENT,
            [](const RefusalScene&, Desc desc, Bindings&) { desc.bindings = nullptr; });
  add_begin("null_buffer", BP_INVALID_ARGUMENT,
            [](const RefusalScene&, Desc, Bindings& bindings) { bindings[1].buffer = nullptr; });
  add_begin("no_bytes", BP_INVALID_ARGUMENT,
            [](const RefusalScene&, Desc, Bindings& bindings) { bindings[1].bytes = 0; });
  add_begin("bytes_past_the_end", BP_INVALID_ARGUMENT,
            [](const RefusalScene&, Desc, Bindings& bindings) { bindings[1].offset = 256; });
  add_begin("offset_past_the_end", BP_INVALID_ARGUMENT,
            [](const RefusalScene&, Desc, Bindings& bindings) { bindings[1].offset = UINT64_MAX - 255; });
  add_begin("overlap", BP_INVALID_ARGUMENT, [](const RefusalScene& scene, Desc, Bindings& bindings) {
    bindings = {{scene.to.get(), 256, 512}, {scene.to.get(), 0, 257}};
  });

  const auto add_launch = [&](const char* what, SpoilLaunch spoil) {
    add(fmt::format("launch_refuses.{}", what), "BP-GRA-010",
        [=](Context& context) { launch_refuses(context, spoil); });
  };
  add_launch("too_few", [](const RefusalScene&, Bindings& bindings) { bindings.pop_back(); });
  add_launch("too_many", [](const RefusalScene&, Bindings& bindings) { bindings.push_back(bindings[0]); });
  add_launch("null_buffer", [](const RefusalScene&, Bindings& bindings) { bindings[1].buffer = nullptr; });
  add_launch("fewer_bytes", [](const RefusalScene&, Bindings& bindings) { bindings[0].bytes -= 256; });
  add_launch("past_the_end", [](const RefusalScene&, Bindings& bindings) { bindings[1].offset = 256; });
}

}  // namespace backplane::conformance
