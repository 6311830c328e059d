// SPDX-License-Identifier: Apache-2.0
// Tests captures and launches of a queue device. The native graph contains the commands as text.
#include <backplane/kit/device_table.hpp>

#include "queue_driver.hpp"

namespace backplane::kit::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class TextGraph {
 public:
  static inline int living = 0;

  TextGraph() { ++living; }
  ~TextGraph() { --living; }
  TextGraph(const TextGraph&) = delete;
  TextGraph& operator=(const TextGraph&) = delete;

  uint32_t size() const { return static_cast<uint32_t>(nodes.size()); }
  void shrink(uint32_t size) { nodes.resize(size); }

  std::vector<std::string> nodes;  // each is "COMMAND after NODE NODE"
};

struct GraphQueue {
  std::unique_ptr<ManualQueue> commands = std::make_unique<ManualQueue>();
  TextGraph* graph = nullptr;
  std::vector<uint32_t> after;

  void add(const std::string& command) {
    std::string text = command + " after";
    for (const uint32_t node : after) text += " " + std::to_string(node);
    graph->nodes.push_back(text);
    after = {graph->size() - 1};
  }
};

// A native device in which a copy of n bytes adds n nodes.
class GraphNative : public ManualNative {
 public:
  using Queue = GraphQueue;
  using Graph = TextGraph;

  static inline bool offers = true;
  static inline Status end_result;                      // the result of end_graph
  static inline std::vector<std::string> launched;      // the nodes that the queues have executed
  static inline std::vector<QueueRange<int>> replaced;  // the ranges of the latest launch

  Result<std::unique_ptr<Queue>> create_queue(const bp_stream_desc&) { return std::make_unique<Queue>(); }
  Result<Mark> mark(Queue& queue, bool timed) { return ManualNative::mark(*queue.commands, timed); }
  Status wait_for(Queue& queue, const Mark& mark) { return ManualNative::wait_for(*queue.commands, mark); }
  Status copy(Queue& queue, Memory dst, uint64_t, Memory src, uint64_t, uint64_t bytes) {
    if (queue.graph == nullptr) return ManualNative::copy(*queue.commands, dst, 0, src, 0, bytes);
    for (uint64_t i = 0; i < bytes; ++i) queue.add("copy");
    return enqueue_result;
  }
  Status launch(Queue& queue, const Program& program, const QueueCall<int>& call) {
    if (queue.graph == nullptr) return ManualNative::launch(*queue.commands, program, call);
    queue.add(*program);
    return enqueue_result;
  }

  bool graphs() const { return offers; }
  Result<std::unique_ptr<Graph>> begin_graph(std::span<const QueueRange<int>>) { return std::make_unique<Graph>(); }
  void record(Queue& queue, Graph* graph, std::span<const uint32_t> after) {
    queue.graph = graph;
    queue.after.assign(after.begin(), after.end());
  }
  Status end_graph(Graph&) { return end_result; }
  Status launch_graph(Queue& queue, Graph& graph, std::span<const QueueRange<int>> ranges) {
    if (!enqueue_result.ok()) return enqueue_result;
    replaced.assign(ranges.begin(), ranges.end());
    queue.commands->commands.emplace_back([&graph] {
      launched.insert(launched.end(), graph.nodes.begin(), graph.nodes.end());
      return Status();
    });
    return {};
  }
};

using GraphDevice = QueueDevice<GraphNative>;

class QueueGraphTest : public testing::Test {
 protected:
  void SetUp() override {
    ManualNative::reset();
    GraphNative::offers = true;
    GraphNative::end_result = {};
    GraphNative::launched.clear();
    GraphNative::replaced.clear();
  }
  void TearDown() override { EXPECT_EQ(TextGraph::living, 0); }

  // Runs the commands that a test left in the queue, and destroys the stream.
  struct RunAndDelete {
    void operator()(GraphDevice::Stream* stream) const {
      ManualQueue& queue = *stream->queue().commands;
      while (stream->wait(0).code() == BP_TIMEOUT) queue.run();
      delete stream;
    }
  };
  using Stream = std::unique_ptr<GraphDevice::Stream, RunAndDelete>;
  using GraphPointer = std::unique_ptr<GraphDevice::Graph>;

  Stream stream() { return Stream(device.create_stream({sizeof(bp_stream_desc), 0}).value()); }
  static void run(GraphDevice::Stream& stream) { stream.queue().commands->run(); }
  Status copy(GraphDevice::Stream& on, uint64_t nodes = 1) {
    const GraphDevice::Buffer dst{1, 64}, src{2, 64};
    return device.copy(on, dst, 0, src, 0, nodes);
  }
  GraphPointer end(GraphDevice::Stream& on) {
    auto made = device.end_graph(on, info);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return GraphPointer(made.ok() ? made.value() : nullptr);
  }
  static const std::vector<std::string>& nodes(const GraphPointer& graph) { return graph->work->native->nodes; }

  Operators<GraphDevice::Operator> operators;
  GraphDevice device{std::make_unique<GraphNative>(),
                     [] {
                       bp_device_info info{};
                       info.alignment = 64;
                       info.memory_kinds = 1u << BP_MEMORY_DEVICE;
                       return info;
                     }(),
                     operators};
  bp_graph_info info{};
};

TEST_F(QueueGraphTest, OnlyDevicesWithGraphsOfferTheInterface) {
  auto* const handle = reinterpret_cast<bp_device*>(&device);
  EXPECT_NE(DeviceTable<GraphDevice>::interface(handle, BP_INTERFACE_GRAPH, 1), nullptr);
  EXPECT_EQ(DeviceTable<GraphDevice>::interface(handle, BP_INTERFACE_GRAPH, 2), nullptr);
  GraphNative::offers = false;
  EXPECT_EQ(DeviceTable<GraphDevice>::interface(handle, BP_INTERFACE_GRAPH, 1), nullptr);
  EXPECT_FALSE(HasGraphs<QueueDevice<ManualNative>>) << "its native device has no graphs";
}

TEST_F(QueueGraphTest, ALaunchExecutesTheCapturedCommands) {
  const Stream a = stream();
  ASSERT_TRUE(device.begin_graph(*a, {}).ok());
  ASSERT_TRUE(copy(*a).ok());
  ASSERT_TRUE(copy(*a, 2).ok());
  const GraphPointer graph = end(*a);
  EXPECT_EQ(info.nodes, 2u);
  EXPECT_THAT(nodes(graph), ElementsAre("copy after", "copy after 0", "copy after 1"));
  EXPECT_TRUE(device.wait(*a, 0).ok()) << "a capture enqueues nothing";
  for (int round = 1; round <= 2; ++round) {
    ASSERT_TRUE(device.launch(*a, *graph, {}).ok());
    EXPECT_EQ(device.wait(*a, 0).code(), BP_TIMEOUT);
    run(*a);
    EXPECT_EQ(GraphNative::launched.size(), 3u * static_cast<unsigned>(round));
  }
  ASSERT_TRUE(copy(*a).ok());
  EXPECT_EQ(graph->work->native->size(), 3u) << "the stream no longer captures";
}

TEST_F(QueueGraphTest, EventsBecomeDependencies) {
  const Stream a = stream(), b = stream();
  GraphDevice::Event fork(false), join(false);
  ASSERT_TRUE(device.begin_graph(*a, {}).ok());
  ASSERT_TRUE(copy(*a).ok());
  ASSERT_TRUE(device.record(fork, *a).ok());
  ASSERT_TRUE(device.wait_event(*b, fork).ok());
  ASSERT_TRUE(copy(*a).ok());
  ASSERT_TRUE(copy(*b, 2).ok());
  ASSERT_TRUE(device.record(join, *b).ok());
  ASSERT_TRUE(device.wait_event(*a, join).ok());
  ASSERT_TRUE(copy(*a).ok());
  const GraphPointer graph = end(*a);
  EXPECT_EQ(info.nodes, 4u);
  EXPECT_THAT(nodes(graph),
              ElementsAre("copy after", "copy after 0", "copy after 0", "copy after 2", "copy after 1 3"));
  EXPECT_FALSE(b->capturing());
}

// After a command that adds no nodes, the stream's next command must still follow the nodes of the stream's earlier
// commands.
TEST_F(QueueGraphTest, ACommandWithoutNodesKeepsTheDependencies) {
  const Stream a = stream();
  ASSERT_TRUE(device.begin_graph(*a, {}).ok());
  ASSERT_TRUE(copy(*a).ok());
  ASSERT_TRUE(a->enqueue([](GraphNative&, GraphQueue&) { return Status(); }).ok());
  ASSERT_TRUE(copy(*a).ok());
  const GraphPointer graph = end(*a);
  EXPECT_EQ(info.nodes, 3u);
  EXPECT_THAT(nodes(graph), ElementsAre("copy after", "copy after 0"));
}

TEST_F(QueueGraphTest, AFailedCommandAddsNothing) {
  const Stream a = stream();
  ASSERT_TRUE(device.begin_graph(*a, {}).ok());
  for (const bp_status code : {BP_OUT_OF_MEMORY, BP_EXECUTION_FAILED}) {
    GraphNative::enqueue_result = {code, "a planted failure"};
    EXPECT_EQ(copy(*a, 3).code(), code);
  }
  GraphNative::enqueue_result = {};
  EXPECT_THROW((void)a->enqueue([](GraphNative&, GraphQueue& queue) -> Status {
    queue.add("lost");
    throw std::bad_alloc();
  }),
               std::bad_alloc);
  ASSERT_TRUE(copy(*a).ok());
  const GraphPointer graph = end(*a);
  EXPECT_EQ(info.nodes, 1u);
  EXPECT_THAT(nodes(graph), ElementsAre("copy after"));
  ASSERT_TRUE(copy(*a).ok()) << "a failure of a capture does not fail the stream";
}

TEST_F(QueueGraphTest, AFailedEndEndsTheCapture) {
  const Stream a = stream();
  ASSERT_TRUE(device.begin_graph(*a, {}).ok());
  GraphNative::end_result = unsupported("a planted failure");
  EXPECT_EQ(device.end_graph(*a, info).status().code(), BP_UNSUPPORTED);
  EXPECT_FALSE(a->capturing());
  EXPECT_EQ(TextGraph::living, 0);
  EXPECT_EQ(device.end_graph(*a, info).status().code(), BP_INVALID_ARGUMENT);
}

TEST_F(QueueGraphTest, PendingLaunchesKeepTheGraph) {
  const Stream a = stream();
  ASSERT_TRUE(device.begin_graph(*a, {}).ok());
  ASSERT_TRUE(copy(*a).ok());
  GraphPointer graph = end(*a);
  ASSERT_TRUE(device.launch(*a, *graph, {}).ok());
  device.destroy(graph.release());
  EXPECT_EQ(TextGraph::living, 1);
  EXPECT_EQ(device.wait(*a, 0).code(), BP_TIMEOUT);
  run(*a);
  EXPECT_TRUE(device.wait(*a, 0).ok());
  EXPECT_THAT(GraphNative::launched, ElementsAre("copy after"));
  EXPECT_EQ(TextGraph::living, 0);
}

TEST_F(QueueGraphTest, PendingLaunchesKeepThePrograms) {
  operators.add(BP_OP_FILL, BP_F32, {.kernel = "fill"});
  bp_tensor_desc output{};
  output.dtype = BP_F32;
  bp_op_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.op = BP_OP_FILL;
  desc.outputs = &output;
  desc.output_count = 1;
  desc.scalar_count = 1;
  GraphDevice::Plan* plan = nullptr;
  bp_plan_info plan_info{};
  ASSERT_TRUE(device.create_plan(&desc, &plan, plan_info).ok());
  GraphDevice::Buffer buffer{1, 64};
  bp_operand target{reinterpret_cast<bp_buffer*>(&buffer), 0, 0}, scalar{};
  bp_execution execution{};
  execution.struct_size = sizeof(execution);
  execution.desc = &desc;
  execution.outputs = &target;
  execution.scalars = &scalar;
  const Stream a = stream();
  ASSERT_TRUE(device.begin_graph(*a, {}).ok());
  ASSERT_TRUE(device.execute(*a, *plan, &execution).ok());
  GraphPointer graph = end(*a);
  EXPECT_THAT(nodes(graph), ElementsAre("fill after"));
  ASSERT_TRUE(device.launch(*a, *graph, {}).ok());
  device.destroy(graph.release());
  device.destroy(plan);
  EXPECT_FALSE(ManualNative::programs[0].expired());
  EXPECT_EQ(device.wait(*a, 0).code(), BP_TIMEOUT);
  run(*a);
  EXPECT_TRUE(device.wait(*a, 0).ok());
  EXPECT_TRUE(ManualNative::programs[0].expired());
}

TEST_F(QueueGraphTest, ALaunchPassesItsRanges) {
  const Stream a = stream();
  GraphDevice::Buffer first{7, 64}, second{8, 128}, host{9, 128, BP_MEMORY_HOST};
  const auto range = [](GraphDevice::Buffer& buffer, uint64_t offset, uint64_t bytes) {
    return bp_graph_binding{reinterpret_cast<bp_buffer*>(&buffer), offset, bytes};
  };
  const std::array captured{range(first, 16, 32)};
  ASSERT_TRUE(device.begin_graph(*a, captured).ok());
  const GraphPointer graph = end(*a);
  const auto launch = [&](const bp_graph_binding& binding) { return device.launch(*a, *graph, {&binding, 1}); };
  ASSERT_TRUE(launch(range(second, 96, 32)).ok());
  ASSERT_EQ(GraphNative::replaced.size(), 1u);
  EXPECT_EQ(GraphNative::replaced[0].memory, 8);
  EXPECT_EQ(GraphNative::replaced[0].offset, 96u);
  EXPECT_THAT(launch(range(second, 97, 32)).message(), HasSubstr("reaches past its buffer"));
  EXPECT_THAT(launch(range(second, 0, 16)).message(), HasSubstr("16 bytes of kind 0, 32 of kind 0 were captured"));
  EXPECT_THAT(launch(range(host, 0, 32)).message(), HasSubstr("32 bytes of kind 1, 32 of kind 0 were captured"));
  ASSERT_TRUE(device.launch(*a, *graph, {}).ok());
  EXPECT_EQ(GraphNative::replaced[0].memory, 7) << "without bindings, a launch has the captured ranges";
  EXPECT_EQ(GraphNative::replaced[0].offset, 16u);
}

TEST_F(QueueGraphTest, EventsOfACaptureHaveNoTimeAndNoHandle) {
  const Stream a = stream(), b = stream();
  GraphDevice::Event event(true);
  ASSERT_TRUE(device.begin_graph(*a, {}).ok());
  ASSERT_TRUE(device.record(event, *a).ok());
  EXPECT_EQ(device.elapsed(event, event).status().code(), BP_INVALID_ARGUMENT);
  EXPECT_EQ(device.wait(event, 0).code(), BP_INVALID_ARGUMENT);
  EXPECT_EQ(device.wait(*a, 0).code(), BP_INVALID_ARGUMENT);
  const GraphPointer graph = end(*a);
  EXPECT_EQ(device.wait_event(*b, event).code(), BP_INVALID_ARGUMENT);
  ASSERT_TRUE(device.record(event, *a).ok());
  EXPECT_EQ(device.wait(event, 0).code(), BP_TIMEOUT);
  EXPECT_TRUE(device.wait_event(*b, event).ok());
}

TEST_F(QueueGraphTest, ALaunchThatFailsEnqueuesNothing) {
  const Stream a = stream();
  ASSERT_TRUE(device.begin_graph(*a, {}).ok());
  ASSERT_TRUE(copy(*a).ok());
  const GraphPointer graph = end(*a);
  GraphNative::enqueue_result = out_of_memory("a planted failure");
  EXPECT_EQ(device.launch(*a, *graph, {}).code(), BP_OUT_OF_MEMORY);
  GraphNative::enqueue_result = {};
  EXPECT_TRUE(device.wait(*a, 0).ok());
  EXPECT_THAT(GraphNative::launched, IsEmpty());
  EXPECT_TRUE(device.launch(*a, *graph, {}).ok());
}

}  // namespace
}  // namespace backplane::kit::test
