// SPDX-License-Identifier: Apache-2.0
// Test cases for graphs through the host library. Each case runs twice: with the plugin's bp.graph, if
// there is one, and with the library's own launch, which needs no bp.graph.
#include "cases/runtime/graph.hpp"
#include "cases/host/cases.hpp"
#include "cases/host/host_side.hpp"
#include "cases/support/add_case.hpp"

namespace backplane::conformance {

namespace {

constexpr int64_t kHostGraphWords = 4096;
constexpr uint64_t kHostGraphBytes = kHostGraphWords * sizeof(uint32_t);

using HostGraph = backplane::Graph;

// The calls of a graph, and the buffers of words that the calls use.
struct HostGraphScene {
  HostGraphScene(Context& given, uint32_t graph_flags)
      : context(given), side(shared_host_side(given)), flags(graph_flags) {
    for (backplane::Buffer& buffer : buffers) buffer = make_buffer(0);
  }
  backplane::Buffer make_buffer(uint32_t word) {
    auto desc = backplane::detail::sized<bph_buffer_desc>();
    desc.bytes = kHostGraphBytes;
    desc.stream = side.stream.get();
    backplane::Buffer buffer(side.device.get(), desc);
    write(buffer, word);
    return buffer;
  }
  void write(const backplane::Buffer& buffer, uint32_t word) {
    const Words words(kHostGraphWords, word);
    backplane::detail::call(bph_copy_in, side.stream.get(), buffer.get(), uint64_t{0},
                            static_cast<const void*>(words.data()), kHostGraphBytes, uint32_t{BPH_COPY_SOURCE_FREE});
  }
  void require(const backplane::Buffer& buffer, uint32_t word, std::string_view what) {
    Words got(kHostGraphWords);
    backplane::detail::call(bph_copy_out, side.stream.get(), static_cast<void*>(got.data()), buffer.get(), uint64_t{0},
                            kHostGraphBytes, uint32_t{0});
    require_same(context, got, Words(kHostGraphWords, word), what);
  }
  static bph_tensor view(const backplane::Buffer& buffer) {
    return view_of(dense_view(BP_U32, {kHostGraphWords}), buffer.get());
  }
  static void add(const backplane::Stream& on, const backplane::Buffer& to, const backplane::Buffer& x,
                  const backplane::Buffer& y) {
    const bph_tensor inputs[] = {view(x), view(y)}, output = view(to);
    auto call = backplane::detail::sized<bph_call>();
    call.op = BP_OP_ADD;
    call.inputs = inputs;
    call.outputs = &output;
    call.input_count = 2;
    call.output_count = 1;
    backplane::detail::call(bph_execute, on.get(), &call);
  }
  static void copy(const backplane::Stream& on, const backplane::Buffer& to, const backplane::Buffer& from) {
    backplane::detail::call(bph_copy, on.get(), to.get(), uint64_t{0}, from.get(), uint64_t{0}, kHostGraphBytes,
                            uint32_t{0});
  }
  static bph_graph_binding whole(const backplane::Buffer& buffer) { return {buffer.get(), 0, kHostGraphBytes}; }
  template <class Body>
  HostGraph record(Body&& body, const std::vector<bph_graph_binding>& bindings = {}) {
    return HostGraph::record(side.stream, body, bindings, flags);
  }

  Context& context;
  HostSide& side;
  const uint32_t flags;
  backplane::Buffer buffers[4];
};

void records_and_launches(Context& context, uint32_t flags) {
  HostGraphScene scene(context, flags);
  auto& [a, b, c, d] = scene.buffers;
  const HostGraph graph = scene.record([&] {
    scene.copy(scene.side.stream, b, a);
    scene.add(scene.side.stream, c, a, b);
    scene.copy(scene.side.stream, d, c);
  });
  context.require(graph.info().nodes >= 3, "a graph of 3 calls has {} nodes", graph.info().nodes);
  context.require((flags & BPH_GRAPH_NO_NATIVE) == 0 || graph.info().flags == 0,
                  "a graph with BPH_GRAPH_NO_NATIVE has the flags {:#x}", graph.info().flags);
  scene.require(d, 0, "memory that recorded work would write");
  for (const uint32_t word : {5u, 7u, 1000u}) {
    scene.write(a, word);
    graph.launch(scene.side.stream);
    scene.require(d, 2 * word, "the result of a launch");
  }
}

void replaces_ranges_of_graph(Context& context, uint32_t flags) {
  HostGraphScene scene(context, flags);
  auto& [a, b, c, d] = scene.buffers;
  const backplane::Buffer in = scene.make_buffer(3), out = scene.make_buffer(0);
  scene.write(a, 1);
  scene.write(b, 10);
  const HostGraph graph =
      scene.record([&] { scene.add(scene.side.stream, c, a, b); }, {scene.whole(a), scene.whole(c)});
  graph.launch(scene.side.stream, {scene.whole(in), scene.whole(out)});
  scene.require(out, 13, "a range of the launch");
  scene.require(c, 0, "a recorded range that the launch replaced");
  graph.launch(scene.side.stream);
  scene.require(c, 11, "a recorded range");
  graph.launch(scene.side.stream, {scene.whole(b), scene.whole(d)});
  scene.require(d, 20, "a range that is also another input of the graph");
  const auto refused = [&](const std::vector<bph_graph_binding>& bindings) {
    try {
      graph.launch(scene.side.stream, bindings);
    } catch (const backplane::Error& error) {
      return error.status() == BP_INVALID_ARGUMENT;
    }
    return false;
  };
  context.require(refused({scene.whole(in)}), "a launch with 1 of 2 bindings was accepted");
  context.require(refused({scene.whole(in), {out.get(), 0, 8}}), "a launch with a range of 8 bytes was accepted");
  context.require(refused({scene.whole(in), scene.whole(in)}), "a launch with one range for two bindings was accepted");
  context.require(refused({scene.whole(in), scene.whole(b)}), "a launch that writes another input was accepted");
}

void streams_of_graph_join(Context& context, uint32_t flags) {
  HostGraphScene scene(context, flags);
  auto& [a, b, c, d] = scene.buffers;
  const backplane::Stream second(scene.side.device);
  const backplane::Event fork(scene.side.device), join(scene.side.device);
  const HostGraph graph = scene.record([&] {
    scene.copy(scene.side.stream, b, a);
    fork.record(scene.side.stream);
    second.wait_event(fork);
    scene.add(second, c, b, b);
    join.record(second);
    scene.side.stream.wait_event(join);
    scene.add(scene.side.stream, d, c, b);
  });
  for (const uint32_t word : {1u, 2u, 3u}) {
    scene.write(a, word);
    graph.launch(scene.side.stream);
    scene.require(d, 3 * word, "the result of a graph of two streams");
  }
}

// Records a softmax that the library decomposes, so the graph needs temporaries. Each launch must give the same result
// as a softmax outside the graph. The launches alternate between two streams.
void temporaries_live_with_the_graph(Context& context, uint32_t flags) {
  HostGraphScene scene(context, flags);
  HostSide& side = scene.side;
  constexpr int64_t rows = 8, columns = 64;
  OpDesc desc(BP_OP_SOFTMAX);
  desc.input(dense_view(BP_F32, {rows, columns})).output(dense_view(BP_F32, {rows, columns}));
  desc.attributes(bp_axis_attributes{sizeof(bp_axis_attributes), 1});
  std::vector<float> values(rows * columns);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 13) * 0.25f;
  const auto* raw = reinterpret_cast<const unsigned char*>(values.data());
  HostCall call(side, desc, {Bytes(raw, raw + values.size() * sizeof(float))},
                {Bytes(values.size() * sizeof(float), 0)}, {});
  call.call.flags |= BPH_CALL_NO_NATIVE;
  call.execute(context, side);
  const std::vector<Bytes> expected = call.results(side);
  const HostGraph graph = scene.record([&] { call.execute(context, side); });
  context.require(graph.info().nodes > 1, "a decomposed softmax has {} node", graph.info().nodes);
  const Bytes zeros(expected[0].size(), 0);
  for (int round = 0; round < 4; ++round) {
    backplane::detail::call(bph_copy_in, side.stream.get(), call.outputs[0].buffer, uint64_t{0},
                            static_cast<const void*>(zeros.data()), uint64_t{zeros.size()},
                            uint32_t{BPH_COPY_SOURCE_FREE});
    side.stream.wait();
    if (round % 2 == 0) {
      graph.launch(side.stream);
    } else {
      const backplane::Stream other(side.device);
      graph.launch(other);
      other.wait();
    }
    require_same(context, call.results(side)[0], expected[0], "the result of a recorded composite");
  }
}

void keeps_released_buffers(Context& context, uint32_t flags) {
  HostGraphScene scene(context, flags);
  auto& [a, b, c, d] = scene.buffers;
  HostGraph graph;
  {
    const backplane::Buffer between = scene.make_buffer(0);
    graph = scene.record([&] {
      scene.add(scene.side.stream, between, a, a);
      scene.add(scene.side.stream, d, between, a);
    });
  }
  // The graph still uses the memory of the released buffer, so new buffers must not get this memory.
  std::vector<backplane::Buffer> others;
  for (uint32_t i = 0; i < 8; ++i) others.push_back(scene.make_buffer(100 + i));
  scene.write(a, 4);
  graph.launch(scene.side.stream);
  scene.require(d, 12, "the result of a graph with a released buffer");
  for (uint32_t i = 0; i < 8; ++i) scene.require(others[i], 100 + i, "memory outside of the graph");
}

void refuses_waits_while_recording(Context& context, uint32_t flags) {
  HostGraphScene scene(context, flags);
  auto& [a, b, c, d] = scene.buffers;
  scene.write(a, 2);
  const HostGraph graph = scene.record([&] {
    ErrorRecord error;
    expect_status(bph_stream_wait(scene.side.stream.get(), 0, &error), error, "bph_stream_wait", {BP_INVALID_ARGUMENT});
    expect_status(bph_graph_begin(scene.side.stream.get(), nullptr, &error), error, "bph_graph_begin",
                  {BP_INVALID_ARGUMENT});
    scene.copy(scene.side.stream, b, a);
    Words words(kHostGraphWords);
    expect_status(bph_copy_out(scene.side.stream.get(), words.data(), b.get(), 0, kHostGraphBytes, 0, &error), error,
                  "bph_copy_out", {BP_INVALID_ARGUMENT});
  });
  context.require(graph.info().nodes == 1, "a graph of 1 call has {} nodes", graph.info().nodes);
  scene.require(b, 0, "memory that recorded work would write");
  graph.launch(scene.side.stream);
  scene.require(b, 2, "the result of a launch");
  ErrorRecord error;
  bph_graph* none = nullptr;
  expect_status(bph_graph_end(scene.side.stream.get(), &none, nullptr, &error), error, "bph_graph_end",
                {BP_INVALID_ARGUMENT});
}

}  // namespace

void add_host_graph_cases(Catalogue& catalogue) {
  const auto add = [&](const char* what, std::string_view requirement, void (*run)(Context&, uint32_t)) {
    for (const bool native : {true, false}) {
      add_case(catalogue, fmt::format("host.graph.{}.{}", what, native ? "native" : "recorded"), {requirement},
               not_claimed_where_declined([=](Context& context) {
                 if (native) (void)graph_of(context, context.device());
                 run(context, native ? 0 : BPH_GRAPH_NO_NATIVE);
               }),
               native ? kGraphExtension : "");
      catalogue.back().since = kGraphSince;
    }
  };
  add("records_and_launches", "BP-USE-040", records_and_launches);
  add("replaces_ranges", "BP-USE-041", replaces_ranges_of_graph);
  add("streams_join", "BP-USE-040", streams_of_graph_join);
  add("temporaries", "BP-USE-042", temporaries_live_with_the_graph);
  add("keeps_buffers", "BP-USE-042", keeps_released_buffers);
  add("refuses_waits", "BP-USE-043", refuses_waits_while_recording);
}

}  // namespace backplane::conformance
