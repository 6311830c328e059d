// SPDX-License-Identifier: Apache-2.0
// Tests streams, events, failures and lifetimes of a queue device. Its native queue runs commands
// only when a test calls run().
#include "queue_driver.hpp"

namespace backplane::kit::test {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

Status broken() { return {BP_EXECUTION_FAILED, "a planted failure", 7}; }

TEST_F(QueueTest, AnIdleStreamIsReadyAndAPollMakesOneMark) {
  auto a = stream();
  EXPECT_TRUE(device->wait(*a, 0).ok());
  EXPECT_EQ(ManualNative::marks, 0);
  ASSERT_TRUE(command(*a).ok());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(device->wait(*a, 0).code(), BP_TIMEOUT);
  EXPECT_EQ(ManualNative::marks, 1);
  run(0);
  EXPECT_TRUE(device->wait(*a, 0).ok());
}

TEST_F(QueueTest, AStreamWithARecordInFlightIsNotIdle) {
  auto a = stream();
  Device::Event* const event = device->create_event(0).value();
  ASSERT_TRUE(device->record(*event, *a).ok());
  EXPECT_EQ(device->wait(*a, 0).code(), BP_TIMEOUT);
  run(0);
  EXPECT_TRUE(device->wait(*a, 0).ok());
  EXPECT_EQ(ManualNative::marks, 1);
  device->destroy(event);
}

// A native device that stays open, and whose programs depend only on the kernel.
class SharingNative : public ManualNative {
 public:
  static constexpr bool kStaysOpen = true;
  static inline int compilations = 0;
  static inline Status condition;
  Status health() const { return condition; }
  static Result<std::unique_ptr<SharingNative>> open(uint32_t, const Host&) {
    return std::make_unique<SharingNative>();
  }
  Result<Program> compile(const Kernel& kernel) {
    ++compilations;
    return std::make_shared<const std::string>(kernel);
  }
};
class SharingDriver : public QueueDriver<SharingNative> {
 public:
  explicit SharingDriver(Host host) : QueueDriver(host, {.name = "sharing", .version = "1"}) {
    operators().add(BP_OP_FILL, BP_F32, {.kernel = "fill"});
    operators().add(BP_OP_FILL, BP_I32, {.kernel = "fill"});
  }
};

TEST(QueueDriverTest, OneCompilationServesAllPlansAndOpeningsOfADevice) {
  for (int opening = 0; opening < 2; ++opening) {
    const SharingDriver driver{Host(nullptr)};
    const std::unique_ptr<SharingDriver::Device> device(driver.open(0, "").value());
    for (const uint16_t dtype : {BP_F32, BP_I32, BP_F32}) {
      bp_tensor_desc output{};
      output.dtype = dtype;
      bp_op_desc desc{};
      desc.struct_size = sizeof(desc);
      desc.op = BP_OP_FILL;
      desc.outputs = &output;
      desc.output_count = 1;
      desc.scalar_count = 1;
      SharingDriver::Device::Plan* plan = nullptr;
      bp_plan_info info{};
      ASSERT_TRUE(device->create_plan(&desc, &plan, info).ok());
      device->destroy(plan);
    }
  }
  EXPECT_EQ(SharingNative::compilations, 2) << "one for each dtype";
}

TEST(QueueDriverTest, ALostDeviceThatStaysOpenCannotBeOpenedAgain) {
  const SharingDriver driver{Host(nullptr)};
  std::unique_ptr<SharingDriver::Device> device(driver.open(0, "").value());
  SharingNative::condition = {BP_DEVICE_LOST, "a planted loss", 7};
  EXPECT_EQ(device->create_stream({}).status().code(), BP_DEVICE_LOST);
  for (int opening = 0; opening < 2; ++opening) {
    const Status refused = driver.open(0, "").status();
    EXPECT_EQ(refused.code(), BP_UNAVAILABLE);
    EXPECT_EQ(refused.vendor_code(), 7);
    EXPECT_THAT(refused.message(), HasSubstr("a planted loss"));
    device.reset();
  }
  SharingNative::condition = {};
  device.reset(driver.open(0, "").value());
  EXPECT_NE(device, nullptr);
}

TEST_F(QueueTest, TimedWaitsPollAndEndInTime) {
  auto a = stream();
  ASSERT_TRUE(command(*a).ok());
  for (const auto timeout : {1ns, 1000ns, 1000000ns, 30000000ns}) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(device->wait(*a, static_cast<uint64_t>(timeout.count())).code(), BP_TIMEOUT);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, timeout);
  }
  std::thread later([] {
    std::this_thread::sleep_for(20ms);
    run(0);
  });
  EXPECT_TRUE(device->wait(*a, BP_WAIT_FOREVER).ok());
  later.join();
}

TEST_F(QueueTest, ARefusedEnqueueLeavesTheStreamAndAPartialOneFailsIt) {
  auto a = stream();
  ManualNative::enqueue_result = out_of_memory("no room");
  EXPECT_EQ(command(*a).code(), BP_OUT_OF_MEMORY);
  ManualNative::enqueue_result = {};
  EXPECT_TRUE(command(*a).ok());
  ManualNative::enqueue_result = broken();
  EXPECT_EQ(command(*a).code(), BP_EXECUTION_FAILED);
  ManualNative::enqueue_result = out_of_memory("a later failure");
  const Status first = command(*a);
  EXPECT_EQ(first.code(), BP_EXECUTION_FAILED);
  EXPECT_EQ(first.vendor_code(), 7);
  EXPECT_THAT(first.message(), HasSubstr("a planted failure"));
  ManualNative::enqueue_result = {};
  EXPECT_EQ(device->wait(*a, 0).code(), BP_TIMEOUT) << "work is in flight";
  run(0);
  EXPECT_EQ(device->wait(*a, 0).code(), BP_EXECUTION_FAILED);
}

TEST_F(QueueTest, ARefusedMarkLeavesTheStreamPending) {
  auto a = stream();
  ASSERT_TRUE(command(*a).ok());
  for (const Status& refusal : {out_of_memory("no room"), Status(BP_INTERNAL, "a driver's text")}) {
    ManualNative::mark_result = refusal;
    ManualNative::marks = 0;
    EXPECT_EQ(device->wait(*a, 0).code(), BP_TIMEOUT);
    EXPECT_EQ(ManualNative::marks, 1);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(device->wait(*a, 20'000'000).code(), BP_TIMEOUT);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
    EXPECT_GT(ManualNative::marks, 2) << "a wait with a timeout tries again";
  }
  ManualNative::mark_result = {};
  EXPECT_EQ(device->wait(*a, 0).code(), BP_TIMEOUT);
  run(0);
  EXPECT_TRUE(device->wait(*a, 0).ok());
  EXPECT_TRUE(command(*a).ok());
}

TEST_F(QueueTest, AStreamWhoseMarksAreRefusedCanBeDestroyed) {
  Device::Stream* const a = device->create_stream({sizeof(bp_stream_desc), 0}).value();
  ASSERT_TRUE(command(*a).ok());
  ManualNative::mark_result = {BP_INTERNAL, "a driver's text"};
  device->destroy(a);
  EXPECT_GT(ManualNative::marks, 1);
}

TEST_F(QueueTest, AMarkThatIsAlwaysRefusedFailsTheStream) {
  auto a = stream();
  ASSERT_TRUE(command(*a).ok());
  ManualNative::mark_result = {BP_INTERNAL, "a driver's text"};
  const Status waited = device->wait(*a, BP_WAIT_FOREVER);
  EXPECT_EQ(waited.code(), BP_EXECUTION_FAILED);
  EXPECT_NE(std::string(waited.message()).find("a driver's text"), std::string::npos) << waited.message();
  ManualNative::mark_result = {};
}

TEST_F(QueueTest, AMarkThatFailsForGoodFailsTheStream) {
  auto a = stream();
  ASSERT_TRUE(command(*a).ok());
  ManualNative::mark_result = broken();
  EXPECT_EQ(device->wait(*a, 0).code(), BP_EXECUTION_FAILED);
  ManualNative::mark_result = {};
  EXPECT_EQ(command(*a).code(), BP_EXECUTION_FAILED);
}

TEST_F(QueueTest, AnEventBeforeTheFailurePassesAndALaterEventFails) {
  auto a = stream();
  Device::Event before(false), behind(false), never(false), late(false);
  ASSERT_TRUE(command(*a).ok());
  ASSERT_TRUE(device->record(before, *a).ok());
  ManualNative::outcome = broken();
  ASSERT_TRUE(command(*a).ok());
  ASSERT_TRUE(device->record(behind, *a).ok());
  EXPECT_EQ(device->wait(behind, 0).code(), BP_TIMEOUT);
  run(0);
  EXPECT_TRUE(device->wait(before, 0).ok());
  EXPECT_EQ(device->wait(behind, 0).code(), BP_EXECUTION_FAILED);
  EXPECT_EQ(device->wait(*a, 0).code(), BP_EXECUTION_FAILED);
  EXPECT_TRUE(device->wait(before, 0).ok());
  EXPECT_TRUE(device->wait(never, 0).ok());
  EXPECT_EQ(device->record(late, *a).code(), BP_EXECUTION_FAILED);
  EXPECT_TRUE(device->wait(late, 0).ok()) << "the event is still one that was never recorded";
}

TEST_F(QueueTest, ARecordThatFailsDoesNotChangeTheEvent) {
  auto a = stream(), b = stream(), c = stream();
  Device::Event event(false);
  ASSERT_TRUE(command(*a).ok());
  ASSERT_TRUE(device->record(event, *a).ok());
  ManualNative::outcome = broken();
  ASSERT_TRUE(command(*b).ok());
  ManualNative::outcome = {};
  ASSERT_EQ(device->wait(*b, 0).code(), BP_TIMEOUT);
  run(1);
  ASSERT_EQ(device->wait(*b, 0).code(), BP_EXECUTION_FAILED);
  EXPECT_EQ(device->record(event, *b).code(), BP_EXECUTION_FAILED);
  EXPECT_EQ(device->wait(event, 0).code(), BP_TIMEOUT) << "the point of `a` is pending";
  EXPECT_TRUE(device->wait_event(*c, event).ok());
  run(0);
  EXPECT_TRUE(device->wait(event, 0).ok());
  EXPECT_TRUE(device->wait_event(*c, event).ok());

  ManualNative::mark_result = out_of_memory("no room");
  EXPECT_EQ(device->record(event, *c).code(), BP_OUT_OF_MEMORY);
  ManualNative::mark_result = {};
  EXPECT_TRUE(device->wait(event, 0).ok()) << "the point of `a` has completed, and `c` is pending";
  run(2);
  EXPECT_EQ(device->wait(*c, 0).code(), BP_TIMEOUT);
  run(2);
  EXPECT_TRUE(device->wait(*c, 0).ok());
}

// A failure of stream `a` propagates to stream `b`, which waits for `a`, and to stream `c`, which
// waits for `b`. The host never waits for `a`.
TEST_F(QueueTest, EventsPropagateAFailure) {
  auto a = stream(), b = stream(), c = stream();
  Device::Event of_a(false), of_b(false), of_c(false), early(false);
  ManualNative::outcome = broken();
  ASSERT_TRUE(command(*a).ok());
  ASSERT_TRUE(device->record(of_a, *a).ok());
  ManualNative::outcome = {};
  ASSERT_TRUE(command(*b).ok());
  ASSERT_TRUE(device->record(early, *b).ok());
  ASSERT_TRUE(device->wait_event(*b, of_a).ok());
  ASSERT_TRUE(device->record(of_b, *b).ok());
  ASSERT_TRUE(device->wait_event(*c, of_b).ok());
  ASSERT_TRUE(device->record(of_c, *c).ok());
  EXPECT_EQ(device->wait(of_c, 0).code(), BP_TIMEOUT);
  for (std::size_t i = 0; i < 3; ++i) run(i);
  const Status waited = device->wait(of_c, 0);
  EXPECT_EQ(waited.code(), BP_EXECUTION_FAILED);
  EXPECT_EQ(waited.vendor_code(), 7);
  EXPECT_THAT(waited.message(), HasSubstr("a planted failure"));
  EXPECT_TRUE(device->wait(early, 0).ok());
  EXPECT_EQ(device->wait(*b, 0).code(), BP_EXECUTION_FAILED);
  EXPECT_EQ(device->wait(*c, 0).code(), BP_EXECUTION_FAILED);
}

TEST_F(QueueTest, WaitingForFailedWorkFailsAtOnce) {
  auto a = stream(), b = stream();
  Device::Event of_a(false);
  ManualNative::outcome = broken();
  ASSERT_TRUE(command(*a).ok());
  ASSERT_TRUE(device->record(of_a, *a).ok());
  run(0);
  EXPECT_EQ(device->wait_event(*b, of_a).code(), BP_EXECUTION_FAILED);
  EXPECT_EQ(command(*b).code(), BP_EXECUTION_FAILED);
}

// Tests two streams that alternately wait for each other. The streams must not keep each other or a
// chain of Record objects alive.
TEST_F(QueueTest, AlternatingStreamsKeepNothing) {
  auto a = stream(), b = stream();
  Device::Event event(false);
  for (int round = 0; round < 1000; ++round) {
    auto& from = round % 2 == 0 ? a : b;
    auto& to = round % 2 == 0 ? b : a;
    ASSERT_TRUE(command(*from).ok());
    ASSERT_TRUE(device->record(event, *from).ok());
    ASSERT_TRUE(device->wait_event(*to, event).ok());
    if (round % 100 == 99) run(0), run(1);
  }
  run(0), run(1);
  event.set({});
  const std::weak_ptr<QueueState<ManualNative>> states[] = {a->state(), b->state()};
  EXPECT_TRUE(device->wait(*a, 0).ok() || (run(0), device->wait(*a, 0).ok()));
  run(1);
  a.reset();
  EXPECT_TRUE(device->wait(*b, 0).ok() || (run(1), device->wait(*b, 0).ok()));
  b.reset();
  EXPECT_TRUE(states[0].expired());
  EXPECT_TRUE(states[1].expired());
}

TEST_F(QueueTest, APlanThatEndsLeavesItsProgramToTheQueue) {
  auto a = stream();
  const bp_operand x = operand();
  constexpr int kPlans = 400;  // exceeds the number of programs that one interval of the stream keeps alive
  for (int i = 0; i < kPlans; ++i) {
    const std::unique_ptr<Device::Plan> once(add());
    ASSERT_NE(once, nullptr) << status.message();
    ASSERT_TRUE(execute(*a, *once, {x, x, x}).ok());
    ASSERT_TRUE(execute(*a, *once, {x, x, x}).ok());
  }
  const auto alive = [] {
    return std::ranges::count_if(ManualNative::programs, [](const auto& each) { return !each.expired(); });
  };
  EXPECT_EQ(alive(), kPlans);
  EXPECT_EQ(device->wait(*a, 0).code(), BP_TIMEOUT);
  run(0);
  EXPECT_TRUE(device->wait(*a, 0).ok());
  EXPECT_EQ(alive(), 0);
  // If a plan is executed again, the stream keeps the plan's program alive again.
  std::unique_ptr<Device::Plan> twice(add());
  ASSERT_TRUE(execute(*a, *twice, {x, x, x}).ok());
  run(0);
  ASSERT_EQ(device->wait(*a, 0).code(), BP_TIMEOUT);
  run(0);
  ASSERT_TRUE(device->wait(*a, 0).ok());
  ASSERT_TRUE(execute(*a, *twice, {x, x, x}).ok());
  twice.reset();
  EXPECT_EQ(alive(), 1);
  EXPECT_EQ(device->wait(*a, 0).code(), BP_TIMEOUT);
  run(0);
  EXPECT_TRUE(device->wait(*a, 0).ok());
  EXPECT_EQ(alive(), 0);
}

TEST_F(QueueTest, OperandsHaveAHandleAndAnOffset) {
  auto a = stream();
  std::vector<bp_tensor_desc> in = {view({4}), view({4})};
  in[1].flags = BP_DESC_IMMEDIATE;
  in[1].strides[0] = 0;
  const std::unique_ptr<Device::Plan> mul(plan(BP_OP_MUL, in));
  ASSERT_NE(mul, nullptr) << status.message();
  const bp_operand x = operand(16), out = operand(32);
  ASSERT_TRUE(execute(*a, *mul, {x, {nullptr, 0, 0x40000000}, out}).ok());
  const Launch& launch = ManualNative::launches.at(0);
  EXPECT_EQ(launch.views[0].place.memory, 1);
  EXPECT_EQ(launch.views[0].place.offset, 16u);
  EXPECT_FALSE(launch.views[0].is_immediate);
  EXPECT_TRUE(launch.views[1].is_immediate);
  EXPECT_EQ(launch.views[1].immediate, 0x40000000u);
  EXPECT_EQ(launch.views[1].place.memory, 0);
  EXPECT_EQ(launch.views[2].place.memory, 2);
  EXPECT_EQ(launch.views[2].place.offset, 32u);
  EXPECT_EQ(launch.workspace.memory, 3);
}

TEST_F(QueueTest, AWorkspaceMayDependOnSizes) {
  const std::unique_ptr<Device::Plan> max(plan(BP_OP_MAX, {view({4}), view({4})}));
  ASSERT_NE(max, nullptr) << status.message();
  EXPECT_NE(info.flags & BP_PLAN_SIZED_WORKSPACE, 0u);
  EXPECT_EQ(info.workspace_bytes, 4u);
  inputs = {view({9}), view({9})};
  desc.inputs = inputs.data();
  output = view({9});
  EXPECT_EQ(device->workspace(*max, &desc).value(), 9u);

  const auto refusal = [&] { return device->workspace(*max, &desc).status(); };
  desc.op = BP_OP_ADD;
  EXPECT_EQ(refusal().code(), BP_INVALID_ARGUMENT) << "another operator";
  desc.op = BP_OP_MAX;
  desc.input_count = 1;
  EXPECT_EQ(refusal().code(), BP_INVALID_ARGUMENT) << "another number of operands";
  desc.input_count = 2;
  inputs[1].dtype = BP_F16;
  EXPECT_THAT(refusal().message(), HasSubstr("input 1 is f16, but the plan is for f32"));
  inputs[1].dtype = BP_F32;
  inputs[1].rank = 2;
  EXPECT_THAT(refusal().message(), HasSubstr("input 1 has rank 2"));
  const std::unique_ptr<Device::Plan> mul(plan(BP_OP_MUL, {view({4}), view({4})}));
  EXPECT_EQ(device->workspace(*mul, &desc).value(), 64u);
}

TEST_F(QueueTest, APlanMayNotBeDeterministic) {
  const std::unique_ptr<Device::Plan> sum(add());
  EXPECT_NE(info.flags & BP_PLAN_DETERMINISTIC, 0u);
  const std::unique_ptr<Device::Plan> max(plan(BP_OP_MAX, {view({4}), view({4})}));
  ASSERT_NE(max, nullptr) << status.message();
  EXPECT_EQ(info.flags & BP_PLAN_DETERMINISTIC, 0u);
}

TEST_F(QueueTest, DenseKernelsHaveImmediatesStaged) {
  std::vector<bp_tensor_desc> in = {view({4}), view({4})};
  in[1].flags = BP_DESC_IMMEDIATE;
  in[1].strides[0] = 0;
  const std::unique_ptr<Device::Plan> sum(plan(BP_OP_ADD, in));
  ASSERT_NE(sum, nullptr) << status.message();
  EXPECT_EQ(info.stage_inputs, 2u);
}

TEST_F(QueueTest, ScalarsInDeviceMemoryAreRequestedByName) {
  auto a = stream();
  const std::unique_ptr<Device::Plan> fill(plan(BP_OP_FILL, {}, BP_OP_FLAG_DEVICE_SCALARS, 1));
  ASSERT_NE(fill, nullptr) << status.message();
  const bp_operand out = operand(), scalar = operand(8);
  ASSERT_TRUE(execute(*a, *fill, {out}, {scalar}).ok());
  EXPECT_TRUE(ManualNative::launches.at(0).scalars[0].on_device);
  EXPECT_EQ(ManualNative::launches.at(0).scalars[0].place.memory, 2);
  EXPECT_EQ(ManualNative::launches.at(0).scalars[0].place.offset, 8u);
  const std::unique_ptr<Device::Plan> given(plan(BP_OP_FILL, {}, 0, 1));
  ASSERT_TRUE(execute(*a, *given, {out}, {{nullptr, 0, 0x3f800000}}).ok());
  EXPECT_EQ(ManualNative::launches.at(1).scalars[0].value<float>(), 1.0f);
  output_dtype = BP_I32;
  EXPECT_EQ(plan(BP_OP_FILL, {}, BP_OP_FLAG_DEVICE_SCALARS, 1), nullptr);
  EXPECT_EQ(status.code(), BP_UNSUPPORTED);
  EXPECT_THAT(status.message(), HasSubstr("DEVICE_SCALARS"));
}

TEST_F(QueueTest, BadRequestsAreDistinguished) {
  auto a = stream();
  const auto create = [&](uint32_t kind, uint64_t bytes, uint64_t alignment) {
    return device->create_buffer({sizeof(bp_buffer_desc), kind, bytes, alignment}).status().code();
  };
  EXPECT_EQ(create(BP_MEMORY_HOST, 4, 0), BP_UNSUPPORTED);
  EXPECT_EQ(create(7, 4, 0), BP_UNSUPPORTED);
  EXPECT_EQ(create(BP_MEMORY_DEVICE, 0, 0), BP_INVALID_ARGUMENT);
  EXPECT_EQ(create(BP_MEMORY_DEVICE, 4, 24), BP_INVALID_ARGUMENT);
  EXPECT_EQ(create(BP_MEMORY_DEVICE, 4, 512), BP_UNSUPPORTED) << "above the device's own";
  Device::Buffer& x = *buffer();
  EXPECT_EQ(device->copy(*a, x, 0, x, 2, 4).code(), BP_INVALID_ARGUMENT) << "overlap";
  EXPECT_EQ(device->copy(*a, x, 62, *buffer(), 0, 4).code(), BP_INVALID_ARGUMENT) << "past the end";
  EXPECT_EQ(device->copy_in(*a, x, 0, nullptr, 4).code(), BP_INVALID_ARGUMENT);
  EXPECT_TRUE(device->copy_in(*a, x, 0, nullptr, 0).ok());
  EXPECT_EQ(device->map(x).status().code(), BP_UNSUPPORTED);
  EXPECT_EQ(device->create_event(BP_EVENT_TIMING).status().code(), BP_UNSUPPORTED) << "the native device times nothing";
  EXPECT_EQ(device->create_event(2).status().code(), BP_UNSUPPORTED);
  EXPECT_EQ(driver.open(0, "speed=11").status().code(), BP_UNSUPPORTED);
  EXPECT_EQ(plan(BP_OP_SUB, {view({4}), view({4})}), nullptr);
  EXPECT_THAT(status.message(), HasSubstr("sub on f32"));
}

}  // namespace
}  // namespace backplane::kit::test
