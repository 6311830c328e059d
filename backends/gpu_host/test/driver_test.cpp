// SPDX-License-Identifier: Apache-2.0
#include "gpu_host/test/driver_test.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <thread>

namespace backplane::gpu_host::test {

using test_driver::Result;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

void DriverTest::SetUp() {
  auto count = platform().count();
  if (!count.ok()) GTEST_SKIP() << count.status().message();
  std::string pattern = testing::TempDir() + "backplane_driver_XXXXXX";
  folder = ::mkdtemp(pattern.data());
  ::setenv("TEST_DRIVER_VIOLATIONS", (folder / "violations").c_str(), 1);
  scope.emplace(context());
  ASSERT_TRUE(*scope) << scope->status().message();
  auto made_stream = stack().create_stream(0);
  auto made_event = stack().create_event(false);
  ASSERT_TRUE(made_stream.ok() && made_event.ok());
  stream = made_stream.value();
  event = made_event.value();
}

void DriverTest::TearDown() {
  if (!scope) return;
  stack().destroy_stream(stream);
  EXPECT_THAT(violations(), IsEmpty());
  std::filesystem::remove_all(folder);
}

std::string DriverTest::violations() const {
  std::ifstream file(folder / "violations");
  std::string out{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove(folder / "violations");
  return out;
}

void DriverTest::expect_violation(const kit::Status& status, Result code, const char* rule) const {
  EXPECT_EQ(status.vendor_code(), static_cast<int64_t>(code)) << status.message();
  EXPECT_THAT(violations(), HasSubstr(rule));
}

std::byte* DriverTest::device_memory() const {
  auto made = stack().allocate_device(kBytes, nullptr, nullptr);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.value();
}

void DriverTest::copy(std::byte* to, const std::byte* from) const {
  EXPECT_TRUE(stack().copy(to, from, kBytes, stream).ok());
}

std::vector<uint32_t> DriverTest::read(const std::byte* address) const {
  std::vector<uint32_t> out(kCount);
  copy(address_of(out), address);
  EXPECT_TRUE(stack().wait_stream(stream).ok());
  return out;
}

Handle DriverTest::kernel() const {
  auto module = stack().load_module(stack().image_of("copy_iota_u32"));
  EXPECT_TRUE(module.ok()) << module.status().message();
  auto out = stack().find_kernel(module.value(), "iota", 0);
  EXPECT_TRUE(out.ok()) << out.status().message();
  return out.value();
}

KernelArguments::KernelArguments(std::byte* out) : pointers{out, nullptr, nullptr, nullptr} {
  params.immediates[1] = 5;
  params.immediates[2] = 3;
  params.immediate = 6;
  params.strides[0][0] = params.strides[3][0] = 1;
  params.shape[0] = params.count = DriverTest::kCount;
  params.rank = 1;
}

GraphNode KernelArguments::node(Handle kernel) const {
  GraphNode out;
  out.kernel = kernel;
  out.groups[0] = 4;
  out.group_size = 64;
  out.arguments = std::as_bytes(std::span(this, 1));
  return out;
}

GraphNode DriverTest::copy_node(std::byte* to, const std::byte* from, uint64_t bytes) const {
  GraphNode out;
  out.kind = GraphNode::Kind::kCopy;
  out.dst = to;
  out.src = from;
  out.bytes = bytes;
  out.context = context().handle();
  return out;
}

kit::Status DriverTest::launch(Handle function, std::byte* out, uint32_t group_size, Handle on) const {
  const KernelArguments arguments(out);
  const GraphNode node = arguments.node(function);
  return stack().launch(function, node.groups, group_size, 0, node.arguments, {}, on == nullptr ? stream : on);
}

void DriverTest::wait_for(Handle recorded) const {
  kit::Status status;
  do {
    std::this_thread::yield();
    status = stack().query(recorded);
  } while (status.code() == BP_TIMEOUT);
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST_F(DriverTest, RunsAKernelBetweenCopies) {
  std::byte* const memory = device_memory();
  std::vector<uint32_t> values(kCount, 7);
  copy(memory, address_of(values));
  EXPECT_THAT(read(memory), Each(7));
  ASSERT_TRUE(launch(kernel(), memory).ok());
  values = read(memory);
  for (uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(values[i], 5 + 3 * i);
  EXPECT_TRUE(stack().free_device(memory, nullptr).ok());
}

TEST_F(DriverTest, RunsAKernelOnRegisteredHostMemory) {
  std::vector<uint32_t> values(kCount);
  std::byte* const memory = address_of(values);
  ASSERT_TRUE(stack().register_host(memory, kBytes).ok());
  EXPECT_EQ(stack().register_host(memory + 32, 8).vendor_code(), static_cast<int64_t>(Result::kAlreadyRegistered));
  ASSERT_TRUE(launch(kernel(), memory).ok());
  expect_violation(stack().unregister_host(memory), Result::kInvalidValue, "may not have ended");
  EXPECT_TRUE(stack().wait_stream(stream).ok());
  EXPECT_EQ(values.back(), 5 + 3 * (kCount - 1));
  EXPECT_TRUE(stack().unregister_host(memory).ok());
  expect_violation(stack().unregister_host(memory), Result::kNotRegistered, "not that of registered memory");
}

TEST_F(DriverTest, AnEventWithoutRecordIsComplete) {
  EXPECT_TRUE(stack().query(event).ok());
  EXPECT_TRUE(stack().wait_event(stream, event).ok());
}

TEST_F(DriverTest, EventsMeasureTime) {
  const Handle begin = stack().create_event(true).value(), end = stack().create_event(true).value();
  std::byte* const memory = device_memory();
  const Handle function = kernel();
  EXPECT_TRUE(stack().record(begin, stream).ok());
  EXPECT_TRUE(launch(function, memory).ok());
  EXPECT_TRUE(stack().record(end, stream).ok());
  wait_for(end);
  auto time = stack().elapsed(begin, end);
  ASSERT_TRUE(time.ok()) << time.status().message();
  EXPECT_GT(time.value(), 0);
  EXPECT_LT(time.value(), 10'000'000'000);
  expect_violation(stack().elapsed(begin, event).status(), Result::kInvalidHandle, "no time");
  EXPECT_TRUE(stack().free_device(memory, nullptr).ok());
}

TEST_F(DriverTest, MemoryIsFreedAfterItsUse) {
  std::byte* const memory = device_memory();
  EXPECT_TRUE(launch(kernel(), memory).ok());
  expect_violation(stack().free_device(memory, nullptr), Result::kInvalidValue, "may not have ended");
  EXPECT_TRUE(stack().record(event, stream).ok());
  wait_for(event);
  EXPECT_TRUE(stack().free_device(memory, nullptr).ok());
  expect_violation(stack().free_device(memory, nullptr), Result::kInvalidValue, "not that of an allocation");
}

TEST_F(DriverTest, StreamsOrderTheirAllocations) {
  const Handle other = stack().create_stream(0).value();
  const Handle pool = stack().create_pool(0, 0).value();
  std::byte* const memory = stack().allocate_device(kBytes, pool, other).value();
  expect_violation(stack().copy(memory, memory + kBytes / 2, 4, stream), Result::kIllegalAddress,
                   "before the stream that allocates it");
  EXPECT_TRUE(stack().record(event, other).ok());
  EXPECT_TRUE(stack().wait_event(stream, event).ok());
  EXPECT_TRUE(launch(kernel(), memory).ok());
  expect_violation(stack().free_device(memory, other), Result::kInvalidValue, "does not wait");
  EXPECT_TRUE(stack().record(event, stream).ok());
  EXPECT_TRUE(stack().wait_event(other, event).ok());
  EXPECT_TRUE(stack().free_device(memory, other).ok());
  stack().destroy_stream(other);
  stack().destroy_pool(pool);
}

TEST_F(DriverTest, APoolKeepsFreedMemoryUpToItsThreshold) {
  const Handle pool = stack().create_pool(0, 2 * kBytes).value();
  const auto allocate = [&](uint64_t bytes) { return stack().allocate_device(bytes, pool, stream).value(); };
  const auto free = [&](std::byte* memory) { EXPECT_TRUE(stack().free_device(memory, stream).ok()); };
  const auto unused = [&] { return stack().unused_bytes(pool).value(); };
  const auto free_bytes = [&] {
    uint64_t out = 0, total = 0;
    EXPECT_TRUE(stack().memory_info(out, total).ok());
    return out;
  };
  const uint64_t before = free_bytes();
  std::byte* const first = allocate(kBytes);
  std::byte* const second = allocate(2 * kBytes);
  EXPECT_EQ(free_bytes(), before - 3 * kBytes);
  free(first);
  EXPECT_EQ(unused(), kBytes);
  EXPECT_TRUE(stack().wait_stream(stream).ok());
  EXPECT_EQ(unused(), 0u) << "more than 2 * kBytes are reserved";
  free(second);
  EXPECT_TRUE(stack().wait_stream(stream).ok());
  EXPECT_EQ(unused(), 2 * kBytes);
  EXPECT_EQ(free_bytes(), before - 2 * kBytes);
  EXPECT_EQ(allocate(2 * kBytes), second);
  EXPECT_EQ(unused(), 0u);
  free(second);
  EXPECT_TRUE(stack().wait_stream(stream).ok());
  stack().trim_pool(pool);
  EXPECT_EQ(unused(), 0u);
  EXPECT_EQ(free_bytes(), before);
  stack().destroy_pool(pool);
}

TEST_F(DriverTest, ADestroyedPoolReturnsItsMemory) {
  const auto free_bytes = [&] {
    uint64_t out = 0, total = 0;
    EXPECT_TRUE(stack().memory_info(out, total).ok());
    return out;
  };
  const uint64_t before = free_bytes();
  const Handle pool = stack().create_pool(0, UINT64_MAX).value();
  std::byte* const freed = stack().allocate_device(kBytes, pool, stream).value();
  std::byte* const used = stack().allocate_device(kBytes, pool, stream).value();
  EXPECT_TRUE(stack().free_device(freed, stream).ok());
  EXPECT_TRUE(stack().wait_stream(stream).ok());
  stack().destroy_pool(pool);
  EXPECT_EQ(free_bytes(), before - kBytes);
  EXPECT_TRUE(stack().free_device(used, stream).ok());
  EXPECT_TRUE(stack().wait_stream(stream).ok());
  EXPECT_EQ(free_bytes(), before);
  expect_violation(stack().unused_bytes(pool).status(), Result::kInvalidValue, "a memory pool is used that was");
  expect_violation(stack().allocate_device(kBytes, pool, stream).status(), Result::kInvalidValue, "destroyed");
}

TEST_F(DriverTest, RejectsWrongUsesOfPools) {
  const Handle pool = stack().create_pool(0, kBytes).value(), foreign = stack().create_pool(1, 0).value();
  expect_violation(stack().create_pool(9, 0).status(), Result::kInvalidValue, "properties of a pool");
  expect_violation(stack().allocate_device(kBytes, foreign, stream).status(), Result::kInvalidValue,
                   "different devices");
  std::byte* const memory = stack().allocate_device(kBytes, pool, stream).value();
  expect_violation(stack().free_device(memory, nullptr), Result::kInvalidValue, "without a stream");
  EXPECT_TRUE(stack().free_device(memory, stream).ok());
  EXPECT_TRUE(stack().wait_stream(stream).ok());
  std::vector<uint32_t> values(kCount);
  expect_violation(stack().copy(memory, address_of(values), kBytes, stream), Result::kInvalidValue, "was freed");
  std::byte* const ordinary = device_memory();
  expect_violation(stack().free_device(ordinary, stream), Result::kInvalidValue, "of a memory pool");
  EXPECT_TRUE(stack().free_device(ordinary, nullptr).ok());
  for (const Handle each : {pool, foreign}) stack().destroy_pool(each);
}

TEST_F(DriverTest, CopiesStayWithinAllocations) {
  std::byte* const memory = device_memory();
  std::vector<uint32_t> values(kCount);
  expect_violation(stack().copy(memory + 4, address_of(values), kBytes, stream), Result::kInvalidValue,
                   "exceeds an allocation");
  const auto* const nothing = reinterpret_cast<const std::byte*>(uintptr_t{4096});
  expect_violation(stack().copy(memory, nothing, kBytes, stream), Result::kInvalidValue, "does not exist");
  EXPECT_TRUE(stack().free_device(memory, nullptr).ok());
}

TEST_F(DriverTest, RejectsTheDefaultStream) {
  expect_violation(stack().record(event, nullptr), Result::kInvalidHandle, "the default stream");
}

TEST_F(DriverTest, RejectsDestroyedStreams) {
  const Handle destroyed = stack().create_stream(0).value();
  stack().destroy_stream(destroyed);
  expect_violation(stack().wait_stream(destroyed), Result::kInvalidHandle, "a stream is used that was destroyed");
}

TEST_F(DriverTest, RejectsObjectsOfAnotherContext) {
  const Handle function = kernel();
  std::byte* const memory = device_memory();
  {
    const Scope inner(context(1));
    const Handle own = stack().create_stream(0).value(), foreign = stack().create_event(false).value();
    expect_violation(launch(function, memory), Result::kInvalidHandle, "the stream has another context");
    expect_violation(stack().record(foreign, stream), Result::kInvalidHandle, "the stream has another context");
    expect_violation(launch(function, memory, 64, own), Result::kInvalidHandle, "the kernel has another context");
    expect_violation(stack().record(event, own), Result::kInvalidHandle, "different contexts");
    stack().destroy_stream(own);
  }
  EXPECT_TRUE(stack().free_device(memory, nullptr).ok());
}

TEST_F(DriverTest, ChecksLaunches) {
  const Handle function = kernel();
  expect_violation(launch(function, nullptr, 2048), Result::kInvalidValue, "size of groups");
  const std::vector<std::byte> few(24);
  expect_violation(stack().launch(function, {1, 1, 1}, 64, 0, few, {}, stream), Result::kInvalidValue, "shorter");
  const std::vector<std::byte> enough(4096);
  expect_violation(stack().launch(function, {1, 1u << 17, 1}, 64, 0, enough, {}, stream), Result::kInvalidValue,
                   "number of groups");
  expect_violation(stack().launch(function, {1, 1, 1}, 64, 1u << 20, enough, {}, stream), Result::kInvalidValue,
                   "more shared memory than its kernel permits");
}

TEST_F(DriverTest, RejectsUnknownModulesAndKernels) {
  const std::vector<std::byte> image(64);
  EXPECT_EQ(stack().load_module(image).status().vendor_code(), static_cast<int64_t>(Result::kInvalidImage));
  const Handle module = stack().load_module(stack().image_of("copy_iota_u32")).value();
  EXPECT_EQ(stack().find_kernel(module, "nothing", 0).status().vendor_code(), static_cast<int64_t>(Result::kNotFound));
}

TEST_F(DriverTest, ALaunchOfAGraphExecutesCopiesOfItsNodes) {
  std::byte *const memory = device_memory(), *const copied = device_memory();
  std::vector<uint32_t> zeros(kCount);
  copy(copied, address_of(zeros));
  const Handle graph = stack().create_graph().value();
  std::vector<Handle> after;
  {
    KernelArguments arguments(memory);
    after.push_back(stack().add_node(graph, {}, arguments.node(kernel())).value());
    arguments.pointers[0] = nullptr;  // the driver has copied the arguments
  }
  GraphNode moves = copy_node(copied, memory);
  const Handle node = stack().add_node(graph, after, moves).value();
  const Handle executable = stack().instantiate(graph).value();
  EXPECT_THAT(read(copied), Each(0));
  EXPECT_TRUE(stack().launch_graph(executable, stream).ok());
  EXPECT_EQ(read(copied).back(), 5 + 3 * (kCount - 1));
  moves.dst = memory;
  moves.src = copied;
  copy(copied, address_of(zeros));
  EXPECT_TRUE(stack().wait_stream(stream).ok());
  EXPECT_TRUE(stack().set_node(executable, node, moves).ok());
  EXPECT_TRUE(stack().launch_graph(executable, stream).ok());
  EXPECT_THAT(read(memory), Each(0));
  stack().destroy_executable(executable);
  stack().destroy_graph(graph);
  for (std::byte* each : {memory, copied}) EXPECT_TRUE(stack().free_device(each, nullptr).ok());
}

// The test driver executes ready nodes in the reverse order of their creation.
TEST_F(DriverTest, NodesWithoutDependenciesHaveNoOrder) {
  std::byte *const first = device_memory(), *const second = device_memory(), *const target = device_memory();
  std::vector<uint32_t> ones(kCount, 1), twos(kCount, 2);
  copy(first, address_of(ones));
  copy(second, address_of(twos));
  for (const bool ordered : {true, false}) {
    const Handle graph = stack().create_graph().value();
    const Handle node = stack().add_node(graph, {}, copy_node(target, first)).value();
    const std::span<const Handle> after(&node, ordered ? 1 : 0);
    EXPECT_TRUE(stack().add_node(graph, after, copy_node(target, second)).ok());
    const Handle executable = stack().instantiate(graph).value();
    EXPECT_TRUE(stack().launch_graph(executable, stream).ok());
    EXPECT_THAT(read(target), Each(ordered ? 2 : 1));
    stack().destroy_executable(executable);
    stack().destroy_graph(graph);
  }
  for (std::byte* each : {first, second, target}) EXPECT_TRUE(stack().free_device(each, nullptr).ok());
}

TEST_F(DriverTest, ChecksTheObjectsOfGraphs) {
  std::byte* const memory = device_memory();
  const GraphNode moves = copy_node(memory, memory + kBytes / 2, 4);
  const Handle graph = stack().create_graph().value(), other = stack().create_graph().value();
  const Handle node = stack().add_node(graph, {}, moves).value();
  const Handle twice[] = {node, node};
  expect_violation(stack().add_node(other, {&node, 1}, moves).status(), Result::kInvalidValue, "another graph");
  expect_violation(stack().add_node(graph, twice, moves).status(), Result::kInvalidValue, "the same node twice");
  expect_violation(stack().add_node(graph, {}, copy_node(memory, memory, 0)).status(), Result::kInvalidValue,
                   "copies no bytes");
  std::vector<uint32_t> pageable(kCount);
  expect_violation(stack().add_node(graph, {}, copy_node(memory, address_of(pageable))).status(), Result::kInvalidValue,
                   "not allocated");
  KernelArguments arguments(memory);
  GraphNode launches = arguments.node(kernel());
  launches.group_size = 2048;
  expect_violation(stack().add_node(graph, {}, launches).status(), Result::kInvalidValue, "size of groups");
  const Handle executable = stack().instantiate(graph).value(), foreign = stack().instantiate(other).value();
  expect_violation(stack().set_node(foreign, node, moves), Result::kInvalidValue, "the graph of the node");
  expect_violation(stack().set_node(executable, node, arguments.node(kernel())), Result::kInvalidValue, "another type");
  stack().destroy_graph(graph);
  expect_violation(stack().set_node(executable, node, moves), Result::kInvalidValue, "the graph of the node");
  expect_violation(stack().instantiate(graph).status(), Result::kInvalidValue, "a graph is used that was destroyed");
  EXPECT_TRUE(stack().launch_graph(executable, stream).ok()) << "an executable outlives its graph";
  EXPECT_TRUE(stack().wait_stream(stream).ok());
  stack().destroy_executable(executable);
  expect_violation(stack().launch_graph(executable, stream), Result::kInvalidHandle, "an executable graph is used");
  stack().destroy_executable(foreign);
  stack().destroy_graph(other);
  EXPECT_TRUE(stack().free_device(memory, nullptr).ok());
}

TEST_F(DriverTest, ACopyKeepsTheKindsOfItsMemory) {
  std::byte* const memory = device_memory();
  std::byte* const host = stack().allocate_host(kBytes).value();
  const Handle graph = stack().create_graph().value();
  const Handle node = stack().add_node(graph, {}, copy_node(memory, host, 4)).value();
  const Handle executable = stack().instantiate(graph).value();
  EXPECT_TRUE(stack().set_node(executable, node, copy_node(memory, host + 8, 4)).ok());
  const kit::Status status = stack().set_node(executable, node, copy_node(memory, memory + 8, 4));
  EXPECT_EQ(status.vendor_code(), static_cast<int64_t>(Result::kInvalidValue));
  stack().destroy_executable(executable);
  stack().destroy_graph(graph);
  EXPECT_TRUE(stack().free_host(host).ok());
  EXPECT_TRUE(stack().free_device(memory, nullptr).ok());
}

TEST_F(DriverTest, OnlySomeDriversChangeRunningGraphs) {
  std::byte* const memory = device_memory();
  const GraphNode moves = copy_node(memory, memory + kBytes / 2, 4);
  const Handle graph = stack().create_graph().value();
  const Handle node = stack().add_node(graph, {}, moves).value();
  const Handle executable = stack().instantiate(graph).value();
  EXPECT_TRUE(stack().launch_graph(executable, stream).ok());
  const kit::Status status = stack().set_node(executable, node, moves);
  if (stack().updates_running_graphs()) {
    EXPECT_TRUE(status.ok()) << status.message();
  } else {
    expect_violation(status, Result::kInvalidValue, "a launch may not have ended");
  }
  EXPECT_TRUE(stack().wait_stream(stream).ok());
  EXPECT_TRUE(stack().set_node(executable, node, moves).ok());
  stack().destroy_executable(executable);
  stack().destroy_graph(graph);
  EXPECT_TRUE(stack().free_device(memory, nullptr).ok());
}

TEST_F(DriverTest, AChildProcessIsRefused) {
  const Stack& driver = stack();
  const pid_t child = ::fork();
  if (child == 0) {
    const auto code = driver.allocate_device(kBytes, nullptr, nullptr).status().vendor_code();
    ::_exit(code == static_cast<int64_t>(Result::kNotInitialized) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// The context of device 2 stays unusable after this test, as after any failure of a kernel.
TEST_F(DriverTest, AnIllegalAddressEndsTheContext) {
  std::byte* const memory = device_memory();
  {
    const Scope inner(context(2));
    const Handle on = stack().create_stream(0).value();
    EXPECT_TRUE(launch(kernel(), memory, 64, on).ok());
    EXPECT_THAT(violations(), HasSubstr("address of another device"));
    const kit::Status status = stack().wait_stream(on);
    EXPECT_EQ(status.vendor_code(), static_cast<int64_t>(Result::kIllegalAddress));
    EXPECT_EQ(status.code(), BP_DEVICE_LOST);
  }
  EXPECT_TRUE(stack().free_device(memory, nullptr).ok());
}

}  // namespace backplane::gpu_host::test
