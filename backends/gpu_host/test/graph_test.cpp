// SPDX-License-Identifier: Apache-2.0
// Tests graphs on the test driver: replaced ranges, instances, and memory of several origins.
#include <sys/mman.h>

#include "gpu_host/test/device_test.hpp"

namespace backplane::gpu_host::test {

namespace {

class GraphTest : public DeviceTest {
 protected:
  void TearDown() override {
    for (simt::Buffer* each : buffers_) context().free(each);
  }
  // Allocates memory whose bytes have the value `byte`.
  simt::Buffer* filled(uint32_t kind, int byte) {
    simt::Buffer* const out = allocate(kind);
    std::memset(out->address, byte, kBytes);
    buffers_.push_back(out);
    return out;
  }
  static Graph::Range whole(simt::Buffer* buffer) { return {buffer, 0, kBytes}; }
  std::unique_ptr<Graph> graph(std::span<const Graph::Range> ranges) const {
    return std::make_unique<Graph>(context(), devices[0]->events, devices[0]->products, ranges);
  }
  // Records copies of whole buffers, in order.
  using Copy = std::pair<simt::Buffer*, simt::Buffer*>;  // target and source
  static void record(Queue& queue, Graph& to, std::initializer_list<Copy> copies) {
    queue.record(&to, {});
    for (const auto& [target, source] : copies) {
      EXPECT_TRUE(queue.copy(target->address, source->address, kBytes).ok());
    }
    queue.record(nullptr, {});
  }
  void launch(Queue& queue, Graph& graph, std::initializer_list<Graph::Range> ranges) const {
    const kit::Status status = queue.launch_graph(graph, {ranges.begin(), ranges.size()});
    EXPECT_TRUE(status.ok()) << status.message();
  }
  void finish(Queue& queue) const { expect_passes(queue.mark(false).value()); }
  static void expect_bytes(const simt::Buffer* buffer, int byte) {
    const std::vector<std::byte> expected(kBytes, static_cast<std::byte>(byte));
    EXPECT_EQ(std::memcmp(buffer->address, expected.data(), kBytes), 0) << "not " << byte;
  }

 private:
  std::vector<simt::Buffer*> buffers_;
};

TEST_F(GraphTest, PendingLaunchesKeepTheirRanges) {
  constexpr int kLaunches = 6;
  const auto queue = create_queue();
  simt::Buffer *const source = filled(BP_MEMORY_HOST, 1), *const target = filled(BP_MEMORY_HOST, 2);
  const Graph::Range ranges[] = {whole(source), whole(target)};
  const auto made = graph(ranges);
  record(*queue, *made, {{target, source}});
  ASSERT_TRUE(made->build().ok());
  std::vector<simt::Buffer*> targets;
  for (int i = 0; i < kLaunches; ++i) {
    targets.push_back(filled(BP_MEMORY_HOST, 0));
    launch(*queue, *made, {whole(filled(BP_MEMORY_HOST, 10 + i)), whole(targets.back())});
  }
  launch(*queue, *made, {ranges[0], ranges[1]});
  finish(*queue);
  for (int i = 0; i < kLaunches; ++i) expect_bytes(targets[static_cast<std::size_t>(i)], 10 + i);
  expect_bytes(target, 1);
  if (context().stack().updates_running_graphs()) {
    EXPECT_EQ(made->instances(), 1u);
  } else {
    EXPECT_GE(made->instances(), 2u);
    EXPECT_LE(made->instances(), 4u);
  }
}

TEST_F(GraphTest, RepeatedLaunchesShareAnInstance) {
  const auto queue = create_queue();
  simt::Buffer *const source = filled(BP_MEMORY_HOST, 1), *const target = filled(BP_MEMORY_HOST, 2);
  const Graph::Range ranges[] = {whole(source), whole(target)};
  const auto made = graph(ranges);
  record(*queue, *made, {{target, source}});
  ASSERT_TRUE(made->build().ok());
  for (int i = 0; i < 8; ++i) launch(*queue, *made, {ranges[0], ranges[1]});
  finish(*queue);
  EXPECT_EQ(made->instances(), 1u);
  expect_bytes(target, 1);
}

// Registered memory and managed memory both have the kind SHARED. The driver does not change a copy of one to a copy
// of the other.
TEST_F(GraphTest, MemoryOfAnotherOriginReplacesTheMemoryOfACopy) {
  const auto queue = create_queue();
  void* const pages = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  std::memset(pages, 7, kBytes);
  simt::Buffer* imported = nullptr;
  ASSERT_TRUE(import(import_of(pages, kBytes), imported).ok());
  simt::Buffer *const source = filled(BP_MEMORY_SHARED, 1), *const target = filled(BP_MEMORY_HOST, 2);
  const Graph::Range ranges[] = {whole(source)};
  const auto made = graph(ranges);
  record(*queue, *made, {{target, source}});
  ASSERT_TRUE(made->build().ok());
  for (const auto& [from, byte] : {std::pair(imported, 7), {source, 1}, {imported, 7}}) {
    launch(*queue, *made, {whole(from)});
    finish(*queue);
    expect_bytes(target, byte);
    EXPECT_EQ(made->instances(), 1u) << "the refused instance is destroyed";
  }
  context().free(imported);
  ::munmap(pages, kBytes);
}

TEST_F(GraphTest, RemovedNodesAreNotExecuted) {
  const auto queue = create_queue();
  simt::Buffer *const source = filled(BP_MEMORY_HOST, 1), *const first = filled(BP_MEMORY_HOST, 2),
                      *const second = filled(BP_MEMORY_HOST, 3), *const other = filled(BP_MEMORY_HOST, 4);
  const Graph::Range ranges[] = {whole(source)};
  const auto made = graph(ranges);
  record(*queue, *made, {{first, source}, {second, source}});
  EXPECT_EQ(made->size(), 2u);
  made->shrink(1);
  ASSERT_TRUE(made->build().ok());
  launch(*queue, *made, {whole(other)});
  finish(*queue);
  expect_bytes(first, 4);
  expect_bytes(second, 3);
}

TEST_F(GraphTest, AnEmptyGraphExecutesNothing) {
  const auto queue = create_queue();
  const auto made = graph({});
  ASSERT_TRUE(made->build().ok());
  launch(*queue, *made, {});
  finish(*queue);
}

}  // namespace

}  // namespace backplane::gpu_host::test
