// SPDX-License-Identifier: Apache-2.0
// Tests the calls that graphs refuse, and the state after a refusal.
#include "graph_host.hpp"

namespace backplane::core::test {
namespace {

using Floats = std::vector<float>;

TEST(GraphRefusal, WaitsAndOtherCallsAreNotRecorded) {
  GraphHost host;
  Owned<bph_stream> other;
  EXPECT_OK(bph_stream_create(host.device, nullptr, other.out(), &error));
  Owned<bph_event> outside;
  EXPECT_OK(bph_event_create(host.device, 0, outside.out(), &error));
  host.begin();
  // An event that was never recorded is treated as completed.
  EXPECT_OK(bph_stream_wait_event(host.stream, outside, &error));
  EXPECT_OK(bph_event_record(outside, other, &error));
  const char* text = "records a graph";
  Floats values(4);
  EXPECT_FAILS(bph_stream_wait(host.stream, 0, &error), BP_INVALID_ARGUMENT, text);
  EXPECT_FAILS(bph_stream_wait_event(host.stream, outside, &error), BP_INVALID_ARGUMENT, "outside");
  EXPECT_FAILS(bph_copy_out(host.stream, values.data(), host.c.buffer, 0, kGraphBytes, 0, &error), BP_INVALID_ARGUMENT,
               text);
  EXPECT_FAILS(bph_copy_in(host.stream, host.c.buffer, 0, values.data(), kGraphBytes, BPH_COPY_SOURCE_FREE, &error),
               BP_INVALID_ARGUMENT, text);
  EXPECT_FAILS(bph_copy_across(host.stream, host.c.buffer, 0, other, host.a.buffer, 0, 4, 0, &error),
               BP_INVALID_ARGUMENT, text);
  EXPECT_FAILS(bph_graph_begin(host.stream, nullptr, &error), BP_INVALID_ARGUMENT, text);
  const auto enqueue = [](void*, bp_device*, bp_stream*, bp_error*) -> bp_status { return BP_OK; };
  EXPECT_FAILS(bph_stream_enqueue(host.stream, enqueue, nullptr, &error), BP_INVALID_ARGUMENT, text);
  const Call add(BP_OP_ADD, {host.a, host.b}, {host.c});
  host.execute(add);
  EXPECT_EQ(host.end().nodes, 1u);
  EXPECT_FAILS(bph_graph_end(host.stream, host.graph.out(), nullptr, &error), BP_INVALID_ARGUMENT, "records no graph");
}

TEST(GraphRefusal, ALaunchIsNotRecorded) {
  GraphHost host;
  host.begin();
  host.end();
  host.begin();
  EXPECT_FAILS(bph_graph_launch(host.stream, host.graph, nullptr, 0, &error), BP_INVALID_ARGUMENT, "records a graph");
  bph_graph* second = nullptr;
  EXPECT_OK(bph_graph_end(host.stream, &second, nullptr, &error));
  bph_graph_release(second);
}

TEST(GraphRefusal, AnInvalidCallRecordsNothing) {
  GraphHost host;
  bph_tensor far = host.a;
  far.offset = 4096;
  const Call bad(BP_OP_ADD, {far, host.b}, {host.c});
  const Call add(BP_OP_ADD, {host.a, host.b}, {host.c});
  host.begin();
  EXPECT_FAILS(bph_execute(host.stream, &bad, &error), BP_INVALID_ARGUMENT, "does not hold");
  host.execute(add);
  EXPECT_EQ(host.end().nodes, 1u);
}

TEST(GraphRefusal, OperandsAreInsideOrOutsideBindings) {
  GraphHost host;
  const Call add(BP_OP_ADD, {host.b, host.b}, {host.c});
  const bp_axis_attributes axis = {sizeof(axis), 0};
  Call softmax(BP_OP_SOFTMAX, {host.a}, {host.c}, &axis);
  softmax.flags = BPH_CALL_NO_NATIVE;
  host.begin({{host.c.buffer, 0, 8}});
  EXPECT_FAILS(bph_execute(host.stream, &add, &error), BP_INVALID_ARGUMENT, "binding 0");
  EXPECT_FAILS(bph_execute(host.stream, &softmax, &error), BP_INVALID_ARGUMENT, "binding 0");
  EXPECT_FAILS(bph_copy(host.stream, host.c.buffer, 4, host.a.buffer, 0, 8, 0, &error), BP_INVALID_ARGUMENT,
               "binding 0");
  EXPECT_OK(bph_copy(host.stream, host.c.buffer, 8, host.a.buffer, 0, 8, 0, &error));
  EXPECT_EQ(host.end().nodes, 1u) << "a refused call leaves no part in the graph";
  host.launch();
  EXPECT_EQ(host.values(host.c), (Floats{0, 0, 1, 2}));
}

TEST(GraphRefusal, ARefusedCallDoesNotChangeBindings) {
  GraphHost host;
  const bph_tensor fixed = host.tensor<float>(BP_F32, {4}, {1, 1, 1, 1});
  host.begin({host.whole(host.a), {host.b.buffer, 0, 8}});
  EXPECT_FAILS(bph_copy(host.stream, host.a.buffer, 0, host.b.buffer, 4, 8, 0, &error), BP_INVALID_ARGUMENT,
               "binding 1");
  host.execute(Call(BP_OP_ADD, {host.a, fixed}, {host.c}));
  host.end();
  host.launch({host.whole(fixed), {host.b.buffer, 0, 8}});
  EXPECT_EQ(host.values(host.c), (Floats{2, 2, 2, 2})) << "no recorded call writes to binding 0";
}

TEST(GraphRefusal, AnEndThatFailsDiscardsTheRecording) {
  GraphHost host;
  const Call add(BP_OP_ADD, {host.a, host.b}, {host.c});
  bph_graph_info info = {};  // has struct_size 0
  for (const bool has_out : {true, false}) {
    host.begin();
    host.execute(add);
    EXPECT_FAILS(bph_graph_end(host.stream, has_out ? host.graph.out() : nullptr, &info, &error), BP_INVALID_ARGUMENT,
                 has_out ? "struct_size" : "null");
    host.execute(add);
    EXPECT_EQ(host.values(host.c), (Floats{11, 22, 33, 44}));
    EXPECT_FAILS(bph_graph_end(host.stream, host.graph.out(), nullptr, &error), BP_INVALID_ARGUMENT,
                 "records no graph");
  }
}

TEST(GraphRefusal, EventsOfAGraphServeOnlyTheGraph) {
  GraphHost host;
  Owned<bph_stream> other;
  EXPECT_OK(bph_stream_create(host.device, nullptr, other.out(), &error));
  Owned<bph_event> point;
  EXPECT_OK(bph_event_create(host.device, 0, point.out(), &error));
  host.begin();
  EXPECT_OK(bph_event_record(point, host.stream, &error));
  EXPECT_FAILS(bph_event_wait(point, 0, &error), BP_INVALID_ARGUMENT, "recorded in a graph");
  host.end();
  EXPECT_FAILS(bph_event_wait(point, 0, &error), BP_INVALID_ARGUMENT, "recorded in a graph");
  EXPECT_FAILS(bph_stream_wait_event(other, point, &error), BP_INVALID_ARGUMENT, "has ended");
  EXPECT_OK(bph_event_record(point, host.stream, &error));
  EXPECT_OK(bph_event_wait(point, BP_WAIT_FOREVER, &error));
  EXPECT_OK(bph_stream_wait_event(other, point, &error));
}

TEST(GraphRefusal, TheFirstStreamWaitsForTheOthers) {
  GraphHost host;
  Owned<bph_stream> other;
  EXPECT_OK(bph_stream_create(host.device, nullptr, other.out(), &error));
  Owned<bph_event> fork;
  EXPECT_OK(bph_event_create(host.device, 0, fork.out(), &error));
  const Call add(BP_OP_ADD, {host.a, host.b}, {host.c});
  host.begin();
  EXPECT_OK(bph_event_record(fork, host.stream, &error));
  EXPECT_OK(bph_stream_wait_event(other, fork, &error));
  EXPECT_FAILS(bph_graph_end(other, host.graph.out(), nullptr, &error), BP_INVALID_ARGUMENT, "joined");
  EXPECT_OK(bph_execute(other, &add, &error));
  EXPECT_FAILS(bph_graph_end(host.stream, host.graph.out(), nullptr, &error), BP_INVALID_ARGUMENT, "waited for 0");
  // The recording is discarded, and both streams execute calls again.
  EXPECT_OK(bph_execute(other, &add, &error));
  EXPECT_OK(bph_stream_wait(other, BP_WAIT_FOREVER, &error));
  EXPECT_EQ(host.values(host.c), (Floats{11, 22, 33, 44}));
}

TEST(GraphRefusal, TwoRecordingsStayApart) {
  GraphHost host;
  Owned<bph_stream> other;
  EXPECT_OK(bph_stream_create(host.device, nullptr, other.out(), &error));
  Owned<bph_event> point;
  EXPECT_OK(bph_event_create(host.device, 0, point.out(), &error));
  host.begin();
  EXPECT_OK(bph_event_record(point, host.stream, &error));
  EXPECT_OK(bph_graph_begin(other, nullptr, &error));
  EXPECT_FAILS(bph_stream_wait_event(other, point, &error), BP_INVALID_ARGUMENT, "another graph");
  EXPECT_OK(bph_graph_end(other, host.graph.out(), nullptr, &error));
  host.end();
}

TEST(GraphRefusal, AReleasedStreamDiscardsItsRecording) {
  GraphHost host;
  Owned<bph_stream> first;
  EXPECT_OK(bph_stream_create(host.device, nullptr, first.out(), &error));
  Owned<bph_event> fork;
  EXPECT_OK(bph_event_create(host.device, 0, fork.out(), &error));
  const uint64_t before = host.stats().bytes_in_use;
  const Call add(BP_OP_ADD, {host.a, host.b}, {host.c});
  EXPECT_OK(bph_graph_begin(first, nullptr, &error));
  EXPECT_OK(bph_execute(first, &add, &error));
  EXPECT_OK(bph_event_record(fork, first, &error));
  EXPECT_OK(bph_stream_wait_event(host.stream, fork, &error));
  first.reset();
  host.execute(add);
  EXPECT_EQ(host.values(host.c), (Floats{11, 22, 33, 44}));
  EXPECT_EQ(host.stats().bytes_in_use, before);
}

TEST(GraphRefusal, AReleasedStreamMayHaveJoined) {
  GraphHost host;
  Owned<bph_stream> other;
  EXPECT_OK(bph_stream_create(host.device, nullptr, other.out(), &error));
  Owned<bph_event> fork, join;
  EXPECT_OK(bph_event_create(host.device, 0, fork.out(), &error));
  EXPECT_OK(bph_event_create(host.device, 0, join.out(), &error));
  const Call add(BP_OP_ADD, {host.a, host.b}, {host.c});
  host.begin();
  EXPECT_OK(bph_event_record(fork, host.stream, &error));
  EXPECT_OK(bph_stream_wait_event(other, fork, &error));
  EXPECT_OK(bph_execute(other, &add, &error));
  EXPECT_OK(bph_event_record(join, other, &error));
  other.reset();
  EXPECT_OK(bph_stream_wait_event(host.stream, join, &error));
  host.end();
  host.launch();
  EXPECT_EQ(host.values(host.c), (Floats{11, 22, 33, 44}));
}

TEST(GraphRefusal, BindingsAreChecked) {
  GraphHost host;
  const auto begin = [&](const std::vector<bph_graph_binding>& bindings) {
    const bph_graph_desc desc = host.describe(bindings);
    ErrorRecord error;
    const bp_status status = bph_graph_begin(host.stream, &desc, &error);
    return std::string(bph_status_name(status)) + " " + error.message;
  };
  const auto refused = [&](const std::vector<bph_graph_binding>& bindings, const char* text) {
    const std::string said = begin(bindings);
    EXPECT_NE(said.find("INVALID_ARGUMENT"), std::string::npos) << said;
    EXPECT_NE(said.find(text), std::string::npos) << said;
  };
  refused({{nullptr, 0, 4}}, "null");
  refused({{host.a.buffer, 0, 0}}, "0 bytes");
  refused({{host.a.buffer, 12, 8}}, "from offset 12");
  refused({{host.a.buffer, UINT64_MAX, 8}}, "of a buffer");
  refused({{host.a.buffer, 0, 8}, {host.b.buffer, 0, 8}, {host.a.buffer, 4, 8}}, "bindings 0 and 2 overlap");
  GraphHost second;
  refused({{second.a.buffer, 0, 8}}, "one open device");
  bph_graph_desc desc = host.describe({});
  desc.flags = 2;
  EXPECT_FAILS(bph_graph_begin(host.stream, &desc, &error), BP_UNSUPPORTED, "flags 0x2");
  desc.flags = 0;
  desc.binding_count = 1;
  EXPECT_FAILS(bph_graph_begin(host.stream, &desc, &error), BP_INVALID_ARGUMENT, "null address");
  EXPECT_OK(bph_stream_wait(host.stream, BP_WAIT_FOREVER, &error));  // succeeds, because the stream records no graph
}

TEST(GraphRefusal, AReplacementKeepsTheAlignmentOfOperands) {
  for (const uint32_t flags : {0u, BPH_GRAPH_NO_NATIVE}) {
    GraphHost host(flags);
    const bph_tensor recorded = host.tensor<float>(BP_F32, {128}, Floats(128, 1));
    const bph_tensor other = host.tensor<float>(BP_F32, {128}, Floats(128, 2));
    bph_tensor inside = host.a;  // begins 12 bytes after the range, at a multiple of 16 bytes
    inside.buffer = recorded.buffer;
    inside.offset = 16;
    host.begin({{recorded.buffer, 4, 64}});
    host.execute(Call(BP_OP_ADD, {inside, host.b}, {host.c}));
    host.end();
    const bph_graph_binding moved = {other.buffer, 8, 64}, same = {other.buffer, 4 + 256, 64};
    EXPECT_FAILS(bph_graph_launch(host.stream, host.graph, &moved, 1, &error), BP_INVALID_ARGUMENT,
                 "a multiple of 16 bytes");
    EXPECT_OK(bph_graph_launch(host.stream, host.graph, &same, 1, &error));
    EXPECT_EQ(host.values(host.c), (Floats{12, 22, 32, 42}));
  }
}

TEST(GraphRefusal, ReplacementsAreChecked) {
  for (const uint32_t flags : {0u, BPH_GRAPH_NO_NATIVE}) {
    GraphHost host(flags);
    const Call add(BP_OP_ADD, {host.a, host.b}, {host.c});
    host.begin({host.whole(host.a), host.whole(host.c)});
    host.execute(add);
    host.end();
    const bph_tensor big = host.tensor<float>(BP_F32, {512}, Floats(512, 1));
    const bph_graph_binding in = host.whole(host.a), out = host.whole(host.c);
    const auto refused = [&](std::vector<bph_graph_binding> given, const char* text) {
      EXPECT_FAILS(bph_graph_launch(host.stream, host.graph, given.data(), static_cast<uint32_t>(given.size()), &error),
                   BP_INVALID_ARGUMENT, text);
    };
    refused({in}, "1 bindings");
    refused({in, {big.buffer, 0, 8}}, "8 bytes");
    refused({in, {big.buffer, 2048, 16}}, "binding 1");
    refused({{big.buffer, 4, 16}, out}, "alignment");
    refused({host.whole(big), host.whole(big)}, "overlap");
    refused({in, host.whole(host.b)}, "binding 1 overlaps memory that the graph uses");
    EXPECT_FAILS(bph_graph_launch(host.stream, host.graph, nullptr, 2, &error), BP_INVALID_ARGUMENT, "null");
    host.launch({host.whole(host.b), host.whole(big)});
    EXPECT_EQ(host.values(big), (Floats{20, 40, 60, 80})) << "two inputs may be one range";
    GraphHost second;
    EXPECT_FAILS(bph_graph_launch(second.stream, host.graph, nullptr, 0, &error), BP_INVALID_ARGUMENT,
                 "one open device");
    bph_graph* stale = host.graph;
    host.graph.reset();
    EXPECT_FAILS(bph_graph_launch(host.stream, stale, nullptr, 0, &error), BP_INVALID_ARGUMENT, "graph");
  }
}

TEST(GraphRefusal, TheFallbackDeviceIsNotRecorded) {
  bph_device_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.fallback = BPH_FALLBACK_ALLOW;
  desc.fallback_device = "reference:0";
  Host host(DENSE_PLUGIN, &desc, REFERENCE_DIRECTORY);
  const bph_tensor x = host.tensor<float>(BP_F32, {2}, {1, 2});
  const bph_tensor y = host.empty(BP_F32, {2}, 8);
  const Call exp(BP_OP_EXP, {x}, {y});
  EXPECT_OK(bph_graph_begin(host.stream, nullptr, &error));
  EXPECT_FAILS(bph_execute(host.stream, &exp, &error), BP_UNSUPPORTED, "fallback");
  Owned<bph_graph> graph;
  EXPECT_OK(bph_graph_end(host.stream, graph.out(), nullptr, &error));
}

}  // namespace
}  // namespace backplane::core::test
