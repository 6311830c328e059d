// SPDX-License-Identifier: Apache-2.0
// Tests graphs: recording, launches, replaced ranges, and the memory that graphs keep.
#include <array>

#include "graph_host.hpp"

namespace backplane::core::test {
namespace {

using Floats = std::vector<float>;

// Each test runs with the plugin's bp.graph and with core's own launch.
class GraphTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  GraphHost host{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Paths, GraphTest, ::testing::Values(0u, BPH_GRAPH_NO_NATIVE),
                         [](const auto& test) { return test.param == 0 ? "native" : "recorded"; });

TEST_P(GraphTest, ExecutesAtEachLaunchOnly) {
  const Call add(BP_OP_ADD, {host.a, host.b}, {host.c});
  host.begin();
  host.execute(add);
  const bph_graph_info info = host.end();
  EXPECT_EQ(info.nodes, 1u);
  EXPECT_EQ(info.flags & ~BPH_GRAPH_NATIVE, 0u);
  if (GetParam() == BPH_GRAPH_NO_NATIVE) {
    EXPECT_EQ(info.flags, 0u);
    EXPECT_EQ(info.device_bytes, 0u);
  }
  EXPECT_EQ(host.values(host.c), (Floats{0, 0, 0, 0}));
  host.launch();
  EXPECT_EQ(host.values(host.c), (Floats{11, 22, 33, 44}));
  host.write(host.a, {5, 6, 7, 8});
  host.launch();
  EXPECT_EQ(host.values(host.c), (Floats{15, 26, 37, 48}));
}

TEST_P(GraphTest, KeepsTheOrderOfCallsAndCopies) {
  const Call add(BP_OP_ADD, {host.a, host.b}, {host.c});
  Floats source = {100, 200, 300, 400}, target(4);
  host.begin();
  EXPECT_OK(bph_copy_in(host.stream, host.a.buffer, 0, source.data(), kGraphBytes, 0, &error));
  host.execute(add);
  EXPECT_OK(bph_copy(host.stream, host.b.buffer, 0, host.c.buffer, 0, kGraphBytes, 0, &error));
  EXPECT_OK(bph_copy_out(host.stream, target.data(), host.b.buffer, 0, kGraphBytes, BPH_COPY_ENQUEUE, &error));
  EXPECT_EQ(host.end().nodes, 4u);
  EXPECT_EQ(target, Floats(4));
  host.launch();
  host.launch();
  EXPECT_OK(bph_stream_wait(host.stream, BP_WAIT_FOREVER, &error));
  EXPECT_EQ(target, (Floats{210, 420, 630, 840}));
  source = {1, 1, 1, 1};
  host.launch();
  EXPECT_OK(bph_stream_wait(host.stream, BP_WAIT_FOREVER, &error));
  EXPECT_EQ(target, (Floats{211, 421, 631, 841})) << "each launch reads the host's memory";
}

TEST_P(GraphTest, BakesScalarsAndImmediates) {
  std::vector<uint64_t> value = {bph_scalar_from_f64(BP_F32, 3)};
  Call fill(BP_OP_FILL, {}, {host.c}, nullptr, value);
  host.begin();
  host.execute(fill);
  host.end();
  fill.scalar_values[0] = bph_scalar_from_f64(BP_F32, 4);
  host.launch();
  EXPECT_EQ(host.values(host.c), (Floats{3, 3, 3, 3}));
}

TEST_P(GraphTest, ReadsDeviceScalarsAtEachLaunch) {
  const bph_tensor values = host.tensor<float>(BP_F32, {4}, {3, 0, 0, 0});
  const bph_tensor others = host.tensor<float>(BP_F32, {4}, {8, 0, 0, 0});
  bph_tensor value = values;
  value.rank = 0;
  Call fill(BP_OP_FILL, {}, {host.c});
  fill.flags = BP_OP_FLAG_DEVICE_SCALARS;
  fill.scalars = nullptr;
  fill.scalar_tensors = &value;
  fill.scalar_count = 1;
  host.begin({host.whole(values)});
  host.execute(fill);
  host.end();
  host.launch();
  EXPECT_EQ(host.values(host.c), (Floats{3, 3, 3, 3}));
  host.write(values, {4});
  host.launch();
  EXPECT_EQ(host.values(host.c), (Floats{4, 4, 4, 4}));
  host.launch({host.whole(others)});
  EXPECT_EQ(host.values(host.c), (Floats{8, 8, 8, 8})) << "a launch may replace the scalar's memory";
  const bph_graph_binding output = host.whole(host.c);
  EXPECT_FAILS(bph_graph_launch(host.stream, host.graph, &output, 1, &error), BP_INVALID_ARGUMENT, "overlaps");
}

TEST_P(GraphTest, AReadOnlyRangeReplacesOnlyWhatTheGraphReads) {
  alignas(256) float memory[4] = {5, 6, 7, 8};
  bph_import_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.type = BP_IMPORT_HOST;
  desc.address = reinterpret_cast<uint64_t>(memory);
  desc.bytes = sizeof(memory);
  Owned<bph_buffer> writable, read_only;
  ASSERT_OK(bph_buffer_import(host.device, &desc, writable.out(), &error));
  desc.flags = BPH_IMPORT_READ_ONLY;
  ASSERT_OK(bph_buffer_import(host.device, &desc, read_only.out(), &error));
  bph_tensor a = host.a;
  a.buffer = writable;
  bph_tensor c = host.c;
  alignas(256) float result[4] = {};
  desc.flags = 0;
  desc.address = reinterpret_cast<uint64_t>(result);
  Owned<bph_buffer> target;
  ASSERT_OK(bph_buffer_import(host.device, &desc, target.out(), &error));
  c.buffer = target;
  const Call add(BP_OP_ADD, {a, host.b}, {c});
  host.begin({host.whole(a), host.whole(c)});
  host.execute(add);
  host.end();
  host.launch({{read_only, 0, kGraphBytes}, host.whole(c)});
  EXPECT_OK(bph_stream_wait(host.stream, BP_WAIT_FOREVER, &error));
  EXPECT_EQ(Floats(result, result + 4), (Floats{15, 26, 37, 48}));
  const bph_graph_binding wrong[] = {{target, 0, kGraphBytes}, {read_only, 0, kGraphBytes}};
  EXPECT_FAILS(bph_graph_launch(host.stream, host.graph, wrong, 2, &error), BP_INVALID_ARGUMENT,
               "binding 1 is read-only memory");
}

TEST_P(GraphTest, ALaunchReplacesRanges) {
  const bph_tensor other = host.tensor<float>(BP_F32, {4}, {1000, 2000, 3000, 4000});
  const bph_tensor out = host.tensor<float>(BP_F32, {4}, {0, 0, 0, 0});
  const Call add(BP_OP_ADD, {host.a, host.b}, {host.c});
  const Call twice(BP_OP_ADD, {host.c, host.c}, {host.c});
  host.begin({host.whole(host.a), host.whole(host.c)});
  host.execute(add);
  host.execute(twice);
  EXPECT_OK(bph_copy(host.stream, host.b.buffer, 0, host.a.buffer, 0, 4, 0, &error));
  host.end();
  host.launch({host.whole(other), host.whole(out)});
  EXPECT_EQ(host.values(host.c), (Floats{0, 0, 0, 0}));
  EXPECT_EQ(host.values(out), (Floats{2020, 4040, 6060, 8080}));
  EXPECT_EQ(host.values(host.b), (Floats{1000, 20, 30, 40}));
  host.launch();
  EXPECT_EQ(host.values(host.c), (Floats{2002, 44, 66, 88})) << "a launch without bindings uses the recorded ranges";
  EXPECT_EQ(host.values(out), (Floats{2020, 4040, 6060, 8080}));
}

TEST_P(GraphTest, APartOfABufferIsReplaced) {
  const bph_tensor long_view = host.tensor<float>(BP_F32, {128}, Floats(128, 1));
  bph_tensor part = host.a;
  part.buffer = long_view.buffer;
  part.offset = 256;
  part.shape[0] = 2;
  part.strides[0] = -1;
  part.offset += 4;
  bph_tensor result = host.c;
  result.shape[0] = 2;
  const Call add(BP_OP_ADD, {part, part}, {result});
  host.begin({{long_view.buffer, 256, 8}});
  host.execute(add);
  host.end();
  const bph_tensor more = host.tensor<float>(BP_F32, {128}, Floats(128, 7));
  host.write(more, {1, 2});
  host.launch({{more.buffer, 0, 8}});
  EXPECT_EQ(host.values(host.c), (Floats{4, 2, 0, 0}));
  host.launch({{more.buffer, 256, 8}});
  EXPECT_EQ(host.values(host.c), (Floats{14, 14, 0, 0}));
}

TEST_P(GraphTest, CompositesAndStagedOperandsHaveTheirOwnMemory) {
  const bph_tensor x = host.tensor<float>(BP_F32, {2, 2}, {1, 2, 3, 4});
  const bph_tensor y = host.tensor<float>(BP_F32, {2, 2}, {0, 0, 0, 0});
  const bp_axis_attributes axis = {sizeof(axis), 1};
  Call softmax(BP_OP_SOFTMAX, {x}, {y}, &axis);
  softmax.flags = BPH_CALL_NO_NATIVE;
  const bp_matmul_attributes full = {sizeof(full), BP_PRECISION_FULL};
  const Call squared(BP_OP_MATMUL, {x, x}, {x}, &full);
  host.begin();
  host.execute(softmax);
  host.execute(squared);
  const bph_graph_info info = host.end();
  EXPECT_GT(info.nodes, 4u);
  EXPECT_GT(info.device_bytes, 0u);
  // Eager calls between the launches use the stream's own temporaries.
  host.launch();
  const bph_tensor eager = host.tensor<float>(BP_F32, {2, 2}, {9, 8, 7, 6});
  const Call other(BP_OP_MATMUL, {eager, eager}, {eager}, &full);
  host.execute(other);
  EXPECT_EQ(host.values(x), (Floats{7, 10, 15, 22}));
  const Floats first = host.values(y);
  EXPECT_NEAR(first[0], 0.26894142f, 1e-6f);
  EXPECT_NEAR(first[1], 0.73105858f, 1e-6f);
  host.launch();
  EXPECT_EQ(host.values(x), (Floats{199, 290, 435, 634}));
  EXPECT_NEAR(host.values(y)[0], 0.04742587f, 1e-6f) << "from the matrix of the first launch";
}

TEST_P(GraphTest, StreamsJoinThroughEvents) {
  Owned<bph_stream> second;
  Owned<bph_event> fork, join;
  EXPECT_OK(bph_stream_create(host.device, nullptr, second.out(), &error));
  EXPECT_OK(bph_event_create(host.device, 0, fork.out(), &error));
  EXPECT_OK(bph_event_create(host.device, 0, join.out(), &error));
  const bph_tensor d = host.tensor<float>(BP_F32, {4}, {0, 0, 0, 0});
  const Call first(BP_OP_ADD, {host.a, host.b}, {host.c});
  const Call on_second(BP_OP_ADD, {host.c, host.b}, {d});
  const Call last(BP_OP_ADD, {d, d}, {host.c});
  host.begin();
  host.execute(first);
  EXPECT_OK(bph_event_record(fork, host.stream, &error));
  EXPECT_OK(bph_stream_wait_event(second, fork, &error));
  EXPECT_OK(bph_execute(second, &on_second, &error));
  EXPECT_OK(bph_event_record(join, second, &error));
  EXPECT_OK(bph_stream_wait_event(host.stream, join, &error));
  host.execute(last);
  EXPECT_EQ(host.end().nodes, 3u);
  EXPECT_EQ(host.values(d), (Floats{0, 0, 0, 0}));
  host.launch();
  EXPECT_EQ(host.values(host.c), (Floats{42, 84, 126, 168}));
  // After the recording, the stream that joined it executes calls again.
  EXPECT_OK(bph_execute(second, &on_second, &error));
  EXPECT_OK(bph_stream_wait(second, BP_WAIT_FOREVER, &error));
  EXPECT_EQ(host.values(d), (Floats{52, 104, 156, 208}));
}

TEST_P(GraphTest, LaunchesOnAnotherStream) {
  Owned<bph_stream> second;
  bph_stream_desc shared = {};
  shared.struct_size = sizeof(shared);
  shared.flags = BPH_STREAM_SHARED;
  EXPECT_OK(bph_stream_create(host.device, &shared, second.out(), &error));
  const Call add(BP_OP_ADD, {host.a, host.b}, {host.c});
  host.begin();
  host.execute(add);
  host.end();
  EXPECT_OK(bph_graph_launch(second, host.graph, nullptr, 0, &error));
  EXPECT_OK(bph_stream_wait(second, BP_WAIT_FOREVER, &error));
  EXPECT_EQ(host.values(host.c), (Floats{11, 22, 33, 44}));
}

TEST_P(GraphTest, SharedStreamsRecord) {
  Owned<bph_stream> shared;
  bph_stream_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.flags = BPH_STREAM_SHARED;
  EXPECT_OK(bph_stream_create(host.device, &desc, shared.out(), &error));
  const Call add(BP_OP_ADD, {host.a, host.b}, {host.c});
  EXPECT_OK(bph_graph_begin(shared, nullptr, &error));
  EXPECT_OK(bph_execute(shared, &add, &error));
  EXPECT_FAILS(bph_stream_wait(shared, 0, &error), BP_INVALID_ARGUMENT, "records a graph");
  EXPECT_OK(bph_graph_end(shared, host.graph.out(), nullptr, &error));
  EXPECT_OK(bph_stream_wait(shared, BP_WAIT_FOREVER, &error));
  EXPECT_EQ(host.values(host.c), (Floats{0, 0, 0, 0}));
  host.launch();
  EXPECT_EQ(host.values(host.c), (Floats{11, 22, 33, 44}));
}

TEST_P(GraphTest, KeepsTheBuffersOfItsWork) {
  const uint64_t before = host.stats().bytes_in_use;
  Owned<bph_buffer> one, two;
  bph_buffer_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.bytes = 4096;
  desc.stream = host.stream;
  EXPECT_OK(bph_buffer_create(host.device, &desc, one.out(), &error));
  bph_tensor between = host.c;
  between.buffer = one;
  const Call first(BP_OP_ADD, {host.a, host.b}, {between});
  const Call second(BP_OP_ADD, {between, between}, {host.c});
  host.begin();
  host.execute(first);
  host.execute(second);
  host.end();
  one.reset();
  // The new buffer has other memory, because the graph keeps the memory of buffer `one`, whose handle was released.
  EXPECT_OK(bph_buffer_create(host.device, &desc, two.out(), &error));
  const std::vector<char> ones(4096, 1);
  EXPECT_OK(bph_copy_in(host.stream, two, 0, ones.data(), ones.size(), 0, &error));
  host.launch();
  std::vector<char> got(4096);
  EXPECT_OK(bph_copy_out(host.stream, got.data(), two, 0, got.size(), 0, &error));
  EXPECT_EQ(got, ones);
  EXPECT_EQ(host.values(host.c), (Floats{22, 44, 66, 88}));
  two.reset();
  EXPECT_GT(host.stats().bytes_in_use, before);
  host.graph.reset();
  EXPECT_EQ(host.stats().bytes_in_use, before);
}

TEST_P(GraphTest, KeepsTheBuffersOfItsBindings) {
  const auto make = [&](uint32_t buffer_flags) {
    bph_buffer_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.bytes = kGraphBytes;
    desc.flags = buffer_flags;
    bph_buffer* made = nullptr;
    EXPECT_OK(bph_buffer_create(host.device, &desc, &made, &error));
    return made;
  };
  bph_buffer* const raw = make(BPH_BUFFER_RAW);
  bph_buffer* const pooled = make(0);
  host.begin({{raw, 0, kGraphBytes}, {pooled, 0, kGraphBytes}});
  bph_buffer_release(raw);
  bph_buffer_release(pooled);
  const Owned<bph_buffer> later(make(0));  // would have the memory of `pooled` if the graph did not keep that memory
  bph_tensor sum = host.c;
  sum.buffer = later;
  host.execute(Call(BP_OP_ADD, {host.a, host.a}, {sum}));
  host.end();
  host.launch({host.whole(host.b), host.whole(host.c)});
  EXPECT_EQ(host.values(sum), (Floats{2, 4, 6, 8}));
  EXPECT_EQ(host.values(host.c), (Floats{0, 0, 0, 0}));
}

TEST_P(GraphTest, AGraphOutlivesItsStreamAndDevice) {
  Owned<bph_stream> other;
  EXPECT_OK(bph_stream_create(host.device, nullptr, other.out(), &error));
  const Call add(BP_OP_ADD, {host.a, host.b}, {host.c});
  host.begin();
  host.execute(add);
  host.end();
  host.stream.reset();
  EXPECT_OK(bph_graph_launch(other, host.graph, nullptr, 0, &error));
  EXPECT_OK(bph_stream_wait(other, BP_WAIT_FOREVER, &error));
  other.reset();
  host.device.reset();
  host.graph.reset();
}

TEST_P(GraphTest, AnEmptyGraphIsLegal) {
  host.begin();
  EXPECT_EQ(host.end().nodes, 0u);
  host.launch();
  EXPECT_OK(bph_stream_wait(host.stream, BP_WAIT_FOREVER, &error));
}

TEST(Graph, StagedOperandsOfADensePluginAreRecorded) {
  for (const uint32_t flags : {0u, BPH_GRAPH_NO_NATIVE}) {
    GraphHost host(flags, DENSE_PLUGIN);
    bph_tensor reversed = host.a;
    reversed.offset = 12;
    reversed.strides[0] = -1;
    const Call sub(BP_OP_SUB, {reversed, host.b}, {host.c});
    host.begin({host.whole(host.a)});
    host.execute(sub);
    EXPECT_EQ(host.end().nodes, 2u);
    host.launch();
    EXPECT_EQ(host.values(host.c), (Floats{-6, -17, -28, -39}));
    const bph_tensor other = host.tensor<float>(BP_F32, {4}, {100, 200, 300, 400});
    host.launch({host.whole(other)});
    EXPECT_EQ(host.values(host.c), (Floats{390, 280, 170, 60}));
  }
}

TEST(Graph, TheNullPluginNeedsNoGraphInterface) {
  GraphHost host(0, NULL_PLUGIN);
  const Call add(BP_OP_ADD, {host.a, host.b}, {host.c});
  host.begin();
  for (int i = 0; i < 100; ++i) host.execute(add);
  const bph_graph_info info = host.end();
  EXPECT_EQ(info.nodes, 100u);
  EXPECT_EQ(info.flags, 0u);
  host.launch();
}

}  // namespace
}  // namespace backplane::core::test
