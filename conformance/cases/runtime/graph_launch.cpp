// SPDX-License-Identifier: Apache-2.0
// Test cases for bp.graph: captured work, launches, replaced ranges and joined streams.
#include <optional>

#include "cases/runtime/cases.hpp"
#include "cases/runtime/graph.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"
#include "cases/support/delay.hpp"
#include "cases/support/leak.hpp"
#include "cases/support/op_desc.hpp"

namespace backplane::conformance {

namespace {

constexpr int64_t kGraphWords = 4096;
constexpr uint64_t kGraphBytes = kGraphWords * sizeof(uint32_t);

// A stream, buffers of words, and a plan that adds words.
struct GraphScene {
  explicit GraphScene(Context& given)
      : context(given),
        device(given.device()),
        calls(given),
        stream(device),
        a(device, kGraphBytes),
        b(device, kGraphBytes),
        c(device, kGraphBytes),
        d(device, kGraphBytes),
        add(device, elementwise(BP_OP_ADD, BP_U32, kGraphWords)) {
    for (Buffer* buffer : {&b, &c, &d}) fill(*buffer, 0);
  }
  void fill(Buffer& buffer, uint32_t word) { upload(buffer, Words(kGraphWords, word)); }
  void require(const Buffer& buffer, uint32_t word, std::string_view what) {
    require_same(context, download<uint32_t>(buffer, kGraphWords), Words(kGraphWords, word), what);
  }
  void copy(Stream& on, Buffer& to, Buffer& from) { on.copy(to.get(), 0, from.get(), 0, kGraphBytes); }
  void sum(Stream& on, Buffer& to, Buffer& x, Buffer& y) {
    add.enqueue(on.get(), {{x.get()}, {y.get()}}, {{to.get()}});
  }

  Context& context;
  Device& device;
  GraphCalls calls;
  Stream stream;
  Buffer a, b, c, d;
  Runner add;
};

void executes_at_launches_only(Context& context) {
  GraphScene scene(context);
  scene.fill(scene.a, 1);
  scene.calls.begin(scene.stream);
  scene.copy(scene.stream, scene.b, scene.a);
  scene.sum(scene.stream, scene.c, scene.a, scene.b);
  scene.copy(scene.stream, scene.d, scene.c);
  const Graph graph = scene.calls.end(scene.stream, 3);
  scene.stream.wait();
  for (const Buffer* buffer : {&scene.b, &scene.c, &scene.d}) {
    scene.require(*buffer, 0, "memory that captured work would write");
  }
  for (const uint32_t word : {5u, 9u, 300u}) {
    scene.fill(scene.a, word);
    scene.calls.launch(scene.stream, graph);
    scene.stream.wait();
    scene.require(scene.b, word, "a copy of a launched graph");
    scene.require(scene.c, 2 * word, "an execution of a launched graph");
    scene.require(scene.d, 2 * word, "a copy after an execution of a launched graph");
  }
}

// Each launch adds to the result of the previous launch.
void launches_in_order(Context& context) {
  GraphScene scene(context);
  Delay delay(context);
  scene.fill(scene.a, 3);
  scene.calls.begin(scene.stream);
  scene.copy(scene.stream, scene.b, scene.c);
  scene.sum(scene.stream, scene.c, scene.a, scene.b);
  const Graph graph = scene.calls.end(scene.stream, 2);
  uint32_t launches = 0;
  for (unsigned round = 0; round < 16; ++round) {
    delay.enqueue(scene.stream, context.below(1500));
    for (unsigned i = 0; i < 5; ++i, ++launches) scene.calls.launch(scene.stream, graph);
    scene.copy(scene.stream, scene.d, scene.c);
    scene.stream.wait();
    scene.require(scene.d, 3 * launches, "the sum of all launches");
  }
}

// Each captured call reads the result of the previous captured call.
void calls_in_order(Context& context) {
  GraphScene scene(context);
  scene.calls.begin(scene.stream);
  scene.sum(scene.stream, scene.b, scene.a, scene.a);
  scene.copy(scene.stream, scene.c, scene.b);
  scene.copy(scene.stream, scene.d, scene.c);
  const Graph graph = scene.calls.end(scene.stream, 3);
  for (uint32_t round = 1; round <= 16; ++round) {
    scene.fill(scene.a, round);
    scene.calls.launch(scene.stream, graph);
    scene.stream.wait();
    scene.require(scene.d, 2 * round, "the last copy of a chain");
  }
}

// A launch must run after the earlier work and before the later work of its stream.
void keeps_the_order_of_its_stream(Context& context) {
  GraphScene scene(context);
  Delay delay(context);
  Stream other(scene.device);
  Buffer source(scene.device, kGraphBytes);
  scene.calls.begin(scene.stream);
  scene.sum(scene.stream, scene.b, scene.a, scene.a);
  const Graph graph = scene.calls.end(scene.stream, 1);
  for (uint32_t round = 1; round <= 32; ++round) {
    Stream& on = round % 2 == 0 ? scene.stream : other;
    scene.fill(scene.a, 0);
    scene.fill(source, round);
    delay.enqueue(on, context.below(1500));
    scene.copy(on, scene.a, source);
    scene.calls.launch(on, graph);
    scene.copy(on, scene.c, scene.b);
    on.wait();
    scene.require(scene.c, 2 * round, "work after a launch that follows work");
  }
}

void replaces_ranges(Context& context) {
  GraphScene scene(context);
  Buffer in(scene.device, kGraphBytes + 4096), out(scene.device, kGraphBytes + 4096);
  scene.fill(scene.a, 1);
  scene.fill(scene.b, 10);
  const auto whole = GraphCalls::whole;
  scene.calls.begin(scene.stream, {whole(scene.a), whole(scene.c), whole(scene.d)});
  scene.sum(scene.stream, scene.c, scene.a, scene.b);
  scene.copy(scene.stream, scene.d, scene.c);
  const Graph graph = scene.calls.end(scene.stream, 2);
  for (const uint64_t offset : {0u, 4096u}) {
    upload(in, Words(kGraphWords + 1024, 77));
    upload(in, Words(kGraphWords, 5), offset);
    upload(out, Words(kGraphWords + 1024, 0));
    for (Buffer* buffer : {&scene.c, &scene.d}) scene.fill(*buffer, 0);
    scene.calls.launch(scene.stream, graph,
                       {{in.get(), offset, kGraphBytes}, whole(scene.c), {out.get(), offset, kGraphBytes}});
    scene.stream.wait();
    scene.require(scene.c, 15, "a recorded range that the launch kept");
    scene.require(scene.d, 0, "a recorded range that the launch replaced");
    Words expected(kGraphWords + 1024, 0);
    std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(offset / 4), kGraphWords, 15u);
    require_same(context, download<uint32_t>(out, expected.size()), expected, "the buffer of a range of the launch");
    scene.calls.launch(scene.stream, graph);
    scene.stream.wait();
    scene.require(scene.d, 11, "a recorded range after a launch without bindings");
  }
  // Both operands of the sum are in one replaced range.
  scene.calls.begin(scene.stream, {whole(scene.a)});
  scene.sum(scene.stream, scene.c, scene.a, scene.a);
  const Graph twice = scene.calls.end(scene.stream, 1);
  scene.calls.launch(scene.stream, twice, {whole(scene.b)});
  scene.stream.wait();
  scene.require(scene.c, 20, "a range that is both inputs");
}

// Several captured calls refer to each replaced range.
void replaces_ranges_of_several_calls(Context& context) {
  GraphScene scene(context);
  Buffer in(scene.device, kGraphBytes), out(scene.device, kGraphBytes), sum(scene.device, kGraphBytes);
  const auto whole = GraphCalls::whole;
  scene.fill(scene.a, 1);
  scene.fill(scene.b, 10);
  scene.calls.begin(scene.stream, {whole(scene.a), whole(scene.c)});
  scene.sum(scene.stream, scene.c, scene.a, scene.b);
  scene.copy(scene.stream, scene.d, scene.c);
  scene.sum(scene.stream, sum, scene.a, scene.c);
  const Graph graph = scene.calls.end(scene.stream, 3);
  for (const uint32_t word : {5u, 6u}) {
    scene.fill(in, word);
    scene.fill(scene.c, 77);
    scene.calls.launch(scene.stream, graph, {whole(in), whole(out)});
    scene.stream.wait();
    scene.require(out, 10 + word, "a range of the launch");
    scene.require(scene.d, 10 + word, "a copy from a range that an earlier call wrote");
    scene.require(sum, 10 + 2 * word, "the sum of two ranges that earlier calls used");
    scene.require(scene.c, 77, "a recorded range that the launch replaced");
  }
}

// Launches with different ranges are pending at the same time.
void pending_launches_keep_their_ranges(Context& context) {
  constexpr uint32_t kLaunches = 6;
  GraphScene scene(context);
  Delay delay(context);
  const auto whole = GraphCalls::whole;
  std::vector<Buffer> in, out;
  for (uint32_t i = 0; i < kLaunches; ++i) {
    scene.fill(in.emplace_back(scene.device, kGraphBytes), 1 + i);
    out.emplace_back(scene.device, kGraphBytes);
  }
  scene.fill(scene.a, 100);
  scene.fill(scene.b, 10);
  scene.calls.begin(scene.stream, {whole(scene.a), whole(scene.c)});
  scene.sum(scene.stream, scene.c, scene.a, scene.b);
  const Graph graph = scene.calls.end(scene.stream, 1);
  for (unsigned round = 0; round < 8; ++round) {
    for (Buffer& buffer : out) scene.fill(buffer, 0);
    scene.fill(scene.c, 0);
    delay.enqueue(scene.stream, 500 + context.below(1500));
    for (uint32_t i = 0; i < kLaunches; ++i) scene.calls.launch(scene.stream, graph, {whole(in[i]), whole(out[i])});
    scene.calls.launch(scene.stream, graph);
    scene.stream.wait();
    for (uint32_t i = 0; i < kLaunches; ++i) scene.require(out[i], 11 + i, "a range of a launch before other launches");
    scene.require(scene.c, 110, "the recorded range after launches with other ranges");
  }
}

// A launch replaces the source, and then the destination, of a captured copy. The replaced range is
// memory of `kind`.
void replaces_copies(Context& context, uint32_t kind) {
  need_kind(context, kind);
  GraphScene scene(context);
  Buffer recorded(scene.device, kGraphBytes, kind), other(scene.device, kGraphBytes, kind);
  for (const bool source : {true, false}) {
    scene.fill(recorded, 1);
    scene.fill(other, 2);
    scene.fill(scene.a, 3);
    scene.calls.begin(scene.stream, {GraphCalls::whole(recorded)});
    source ? scene.copy(scene.stream, scene.a, recorded) : scene.copy(scene.stream, recorded, scene.a);
    const Graph graph = scene.calls.end(scene.stream, 1);
    scene.calls.launch(scene.stream, graph, {GraphCalls::whole(other)});
    scene.stream.wait();
    scene.require(scene.a, source ? 2 : 3, "device memory");
    scene.require(recorded, 1, "memory that the launch replaced");
    scene.require(other, source ? 2 : 3, "memory of the launch");
  }
}

void reads_host_memory_at_launches(Context& context) {
  GraphScene scene(context);
  if (scene.device->copy_in == nullptr || scene.device->copy_out == nullptr)
    context.not_claimed("the device does not copy pageable memory");
  Words source(kGraphWords, 1), target(kGraphWords, 0);
  ErrorRecord error;
  scene.calls.begin(scene.stream);
  expect_status(scene.device->copy_in(scene.device.get(), scene.stream.get(), scene.a.get(), 0, source.data(),
                                      kGraphBytes, &error),
                error, "copy_in", {BP_OK});
  scene.sum(scene.stream, scene.b, scene.a, scene.a);
  expect_status(scene.device->copy_out(scene.device.get(), scene.stream.get(), target.data(), scene.b.get(), 0,
                                       kGraphBytes, &error),
                error, "copy_out", {BP_OK});
  const Graph graph = scene.calls.end(scene.stream, 3);
  require_same(context, target, Words(kGraphWords, 0), "host memory before a launch");
  for (const uint32_t word : {4u, 6u}) {
    std::fill(source.begin(), source.end(), word);
    scene.calls.launch(scene.stream, graph);
    scene.stream.wait();
    require_same(context, target, Words(kGraphWords, 2 * word), "host memory after a launch");
  }
}

OpDesc fill_desc() { return OpDesc(BP_OP_FILL).output(dense_view(BP_U32, {kGraphWords})).scalars(1); }

void records_scalars(Context& context) {
  GraphScene scene(context);
  Runner fill(scene.device, fill_desc());
  scene.calls.begin(scene.stream);
  fill.enqueue(scene.stream.get(), {}, {{scene.a.get()}}, {7});
  scene.copy(scene.stream, scene.b, scene.a);
  const Graph graph = scene.calls.end(scene.stream, 2);
  fill.enqueue(scene.stream.get(), {}, {{scene.a.get()}}, {8});
  scene.calls.launch(scene.stream, graph);
  scene.stream.wait();
  scene.require(scene.b, 7, "a recorded scalar");
}

void reads_device_scalars_at_launches(Context& context) {
  GraphScene scene(context);
  OpDesc desc = fill_desc();
  desc.flags(BP_OP_FLAG_DEVICE_SCALARS);
  state_alignment(scene.device, desc);
  Plan plan(scene.device, desc.get());
  Buffer scalar(scene.device, 256), other(scene.device, 256);
  std::optional<Buffer> workspace;
  const bp_operand output = {scene.a.get(), 0, 0}, from = {scalar.get(), 0, 0};
  bp_execution execution = {};
  execution.struct_size = sizeof(execution);
  execution.desc = &desc.get();
  execution.outputs = &output;
  execution.scalars = &from;
  execution.workspace_bytes = plan.info.workspace_bytes;
  if (plan.info.workspace_bytes != 0) {
    workspace.emplace(scene.device, plan.info.workspace_bytes);
    execution.workspace = workspace->get();
  }
  scene.calls.begin(scene.stream, {GraphCalls::whole(scalar)});
  plan.execute(scene.stream.get(), execution);
  const Graph graph = scene.calls.end(scene.stream, 1);
  for (const uint32_t word : {3u, 4u}) {
    upload(scalar, Words(64, word));
    scene.calls.launch(scene.stream, graph);
    scene.stream.wait();
    scene.require(scene.a, word, "a scalar in memory");
  }
  upload(other, Words(64, 9));
  scene.calls.launch(scene.stream, graph, {GraphCalls::whole(other)});
  scene.stream.wait();
  scene.require(scene.a, 9, "a scalar in a range of the launch");
}

// The streams of a capture wait for each other through events.
void streams_join(Context& context) {
  GraphScene scene(context);
  Delay delay(context);
  std::optional<Stream> second(scene.device);
  std::optional<Event> fork(scene.device), join(scene.device);
  scene.calls.begin(scene.stream);
  scene.copy(scene.stream, scene.b, scene.a);
  scene.stream.record(fork->get());
  second->wait_event(fork->get());
  scene.sum(*second, scene.c, scene.b, scene.b);
  second->record(join->get());
  scene.stream.wait_event(join->get());
  scene.sum(scene.stream, scene.d, scene.c, scene.b);
  const Graph graph = scene.calls.end(scene.stream, 3);
  // A launch must not need the events and the second stream of the capture.
  second.reset();
  fork.reset();
  join.reset();
  for (uint32_t round = 1; round <= 16; ++round) {
    scene.fill(scene.a, round);
    for (Buffer* buffer : {&scene.b, &scene.c, &scene.d}) scene.fill(*buffer, 0);
    delay.enqueue(scene.stream, context.below(1500));
    scene.calls.launch(scene.stream, graph);
    scene.stream.wait();
    scene.require(scene.d, 3 * round, "the result of a graph of two streams");
  }
}

// After the capture has ended, a stream that joined the capture must execute calls again, instead of capturing the
// calls.
void joined_streams_execute_again(Context& context) {
  GraphScene scene(context);
  Stream second(scene.device);
  Event fork(scene.device), join(scene.device);
  scene.fill(scene.a, 6);
  scene.calls.begin(scene.stream);
  scene.stream.record(fork.get());
  second.wait_event(fork.get());
  scene.copy(second, scene.b, scene.a);
  second.record(join.get());
  scene.stream.wait_event(join.get());
  const Graph graph = scene.calls.end(scene.stream, 1);
  scene.copy(second, scene.c, scene.a);
  second.wait();
  scene.require(scene.b, 0, "memory of captured work");
  scene.require(scene.c, 6, "memory of work after the capture");
  scene.copy(scene.stream, scene.d, scene.a);
  scene.stream.wait();
  scene.require(scene.d, 6, "memory of work after the capture");
}

void destroy_leaves_launches(Context& context) {
  GraphScene scene(context);
  Delay delay(context);
  for (uint32_t round = 1; round <= 16; ++round) {
    scene.fill(scene.a, round);
    scene.calls.begin(scene.stream);
    scene.copy(scene.stream, scene.b, scene.a);
    scene.sum(scene.stream, scene.c, scene.b, scene.b);
    Graph graph = scene.calls.end(scene.stream, 2);
    delay.enqueue(scene.stream, context.below(3000));
    scene.calls.launch(scene.stream, graph);
    graph.reset();
    scene.stream.wait();
    scene.require(scene.c, 2 * round, "the result of a graph that was destroyed");
  }
}

void graphs_are_apart(Context& context) {
  GraphScene one(context), two(context);
  one.fill(one.a, 1);
  two.fill(two.a, 2);
  one.calls.begin(one.stream);
  two.calls.begin(two.stream);
  one.copy(one.stream, one.b, one.a);
  two.copy(two.stream, two.b, two.a);
  two.copy(two.stream, two.c, two.b);
  const Graph second = two.calls.end(two.stream, 2);
  one.copy(one.stream, one.c, one.b);
  const Graph first = one.calls.end(one.stream, 2);
  for (unsigned round = 0; round < 16; ++round) {
    one.calls.launch(one.stream, first);
    two.calls.launch(two.stream, second);
  }
  one.stream.wait();
  two.stream.wait();
  one.require(one.c, 1, "the first of two graphs");
  two.require(two.c, 2, "the second of two graphs");
}

void empty_graph(Context& context) {
  GraphScene scene(context);
  scene.calls.begin(scene.stream);
  const Graph graph = scene.calls.end(scene.stream, 0);
  scene.calls.launch(scene.stream, graph);
  scene.stream.wait();
}

void graphs_leave_nothing(Context& context) {
  GraphScene scene(context);
  expect_no_leak(context, "capture, launch and destruction of a graph", 50, [&] {
    scene.calls.begin(scene.stream, {GraphCalls::whole(scene.a)});
    scene.copy(scene.stream, scene.b, scene.a);
    scene.sum(scene.stream, scene.c, scene.b, scene.a);
    const Graph graph = scene.calls.end(scene.stream, 2);
    scene.calls.launch(scene.stream, graph);
    scene.calls.launch(scene.stream, graph, {GraphCalls::whole(scene.d)});
    scene.stream.wait();
  });
}

}  // namespace

void add_graph_cases(Catalogue& catalogue) {
  const auto add = [&](std::string what, std::vector<std::string_view> requirements,
                       std::function<void(Context&)> run) {
    add_case(catalogue, "runtime.graph." + std::move(what), std::move(requirements), std::move(run), kGraphExtension);
    catalogue.back().since = kGraphSince;
  };
  add("executes_at_launches_only", {"BP-GRA-001", "BP-GRA-002"}, executes_at_launches_only);
  add("launches_in_order", {"BP-GRA-002"}, launches_in_order);
  add("calls_in_order", {"BP-GRA-002"}, calls_in_order);
  add("keeps_the_order_of_its_stream", {"BP-GRA-003"}, keeps_the_order_of_its_stream);
  add("replaces_ranges", {"BP-GRA-004"}, replaces_ranges);
  add("replaces_ranges_of_several_calls", {"BP-GRA-004"}, replaces_ranges_of_several_calls);
  add("pending_launches_keep_their_ranges", {"BP-GRA-004"}, pending_launches_keep_their_ranges);
  for (uint32_t kind = 0; kind < BP_MEMORY_KINDS; ++kind) {
    add(fmt::format("replaces_copies.{}", kind_name(kind)), {"BP-GRA-004"},
        [=](Context& context) { replaces_copies(context, kind); });
  }
  add("reads_host_memory_at_launches", {"BP-GRA-005"}, reads_host_memory_at_launches);
  add("records_scalars", {"BP-GRA-005"}, records_scalars);
  add("reads_device_scalars_at_launches", {"BP-GRA-005"}, reads_device_scalars_at_launches);
  add("streams_join", {"BP-GRA-006"}, streams_join);
  add("joined_streams_execute_again", {"BP-GRA-001", "BP-GRA-006"}, joined_streams_execute_again);
  add("destroy_leaves_launches", {"BP-GRA-007"}, destroy_leaves_launches);
  add("graphs_are_apart", {"BP-GRA-001"}, graphs_are_apart);
  add("empty_graph", {"BP-GRA-002"}, empty_graph);
  add("leaves_nothing", {"BP-GRA-008"}, graphs_leave_nothing);
  add_graph_refusal_cases(catalogue);
}

}  // namespace backplane::conformance
