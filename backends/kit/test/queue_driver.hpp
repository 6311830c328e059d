// SPDX-License-Identifier: Apache-2.0
// A native queue whose commands run only when a test runs them, and helpers to call a device with
// this queue.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <backplane/kit/queue_device.hpp>
#include <deque>

namespace backplane::kit::test {

// The result of a mark. The thread that runs the queue sets the result, and other threads poll it.
class Fence {
 public:
  void end(const Status& result) {
    std::lock_guard lock(mutex_);
    result_ = result;
  }
  Status result() const {
    std::lock_guard lock(mutex_);
    return result_;
  }

 private:
  mutable std::mutex mutex_;
  Status result_ = timed_out();
};

struct ManualQueue {
  std::deque<std::function<Status()>> commands;
  Status failure;

  // Runs the next `count` commands. The queue keeps the first failure.
  void run(std::size_t count = SIZE_MAX) {
    for (; count > 0 && !commands.empty(); --count) {
      if (Status status = commands.front()(); failure.ok()) failure = status;
      commands.pop_front();
    }
  }
};

struct Launch {
  std::array<QueueView<int>, 3> views;
  std::array<QueueScalar<int>, 2> scalars;
  Place<int> workspace;
};

class ManualNative {
 public:
  using Memory = int;
  using Queue = ManualQueue;
  using Mark = std::shared_ptr<Fence>;
  using Kernel = std::string;
  using Program = std::shared_ptr<const std::string>;  // tests observe the program's destruction

  static inline Status outcome;         // the result of the next commands when they run
  static inline Status enqueue_result;  // the result of the next enqueue calls
  static inline Status mark_result;     // the result of the next marks
  static inline int marks = 0;
  static inline int memories = 0;
  static inline std::vector<Queue*> queues;
  static inline std::vector<Launch> launches;
  static inline std::vector<std::weak_ptr<const std::string>> programs;
  static void reset() {
    outcome = enqueue_result = mark_result = Status();
    marks = memories = 0;
    queues.clear();
    launches.clear();
    programs.clear();
  }

  static Result<uint32_t> count() { return 1u; }
  static Status info(uint32_t, bp_device_info& info) {
    info.max_buffer_bytes = 1 << 20;
    info.capabilities = BP_CAP_DETERMINISTIC;
    return {};
  }
  static Result<std::unique_ptr<ManualNative>> open(uint32_t, const Host&) { return std::make_unique<ManualNative>(); }

  Status memory_info(uint32_t, bp_memory_info& out) {
    out.total_bytes = 1 << 20;
    return {};
  }
  Result<Memory> allocate(const bp_buffer_desc& desc) {
    EXPECT_NE(desc.alignment, 0u);
    return ++memories;
  }
  void free(Memory) {}
  Result<std::unique_ptr<Queue>> create_queue(const bp_stream_desc&) {
    auto queue = std::make_unique<Queue>();
    queues.push_back(queue.get());
    return queue;
  }
  Result<Mark> mark(Queue& queue, bool) {
    ++marks;
    if (!mark_result.ok()) return mark_result;
    auto fence = std::make_shared<Fence>();
    queue.commands.emplace_back([&queue, fence] {
      fence->end(queue.failure);
      return Status();
    });
    return fence;
  }
  Status poll(const Mark& mark) { return mark->result(); }
  Status wait_for(Queue& queue, const Mark&) { return push(queue); }
  Status copy(Queue& queue, Memory, uint64_t, Memory, uint64_t, uint64_t) { return push(queue); }
  Status copy_in(Queue& queue, Memory, uint64_t, const void*, uint64_t) { return push(queue); }
  Status copy_out(Queue& queue, void*, Memory, uint64_t, uint64_t) { return push(queue); }
  Result<Program> compile(const Kernel& kernel, const CheckedDesc&, const PlanForm&) {
    auto program = std::make_shared<const std::string>(kernel);
    programs.push_back(program);
    return program;
  }
  // The workspace of `max` has a byte per element of the output.
  static Status prepare(const Kernel& kernel, const CheckedDesc& checked, PlanNeeds& needs) {
    needs.sized_workspace = kernel == "max";
    if (needs.sized_workspace) needs.workspace_bytes = static_cast<uint64_t>(checked.desc.outputs[0].shape[0]);
    return {};
  }
  static uint64_t workspace(const Program&, const bp_op_desc& desc) {
    return static_cast<uint64_t>(desc.outputs[0].shape[0]);
  }
  static bool is_deterministic(const Kernel& kernel, const CheckedDesc&) { return kernel != "max"; }
  Status launch(Queue& queue, const Program&, const QueueCall<int>& call) {
    Launch launch;
    std::copy(call.inputs.begin(), call.inputs.end(), launch.views.begin());
    launch.views[2] = call.out();
    std::copy(call.scalars.begin(), call.scalars.end(), launch.scalars.begin());
    launch.workspace = call.workspace;
    launches.push_back(launch);
    return push(queue);
  }

 private:
  static Status push(Queue& queue) {
    if (!enqueue_result.ok()) return enqueue_result;
    queue.commands.emplace_back([result = outcome] { return result; });
    return {};
  }
};

class QueueDriverOfTests : public QueueDriver<ManualNative> {
 public:
  explicit QueueDriverOfTests(Host host) : QueueDriver(host, {.name = "queue_test", .version = "1"}) {
    operators().add(BP_OP_ADD, BP_F32, {.kernel = "add"});
    operators().add(BP_OP_MUL, BP_F32, {.kernel = "mul", .dense = false, .workspace_bytes = 64});
    operators().add(BP_OP_MAX, BP_F32, {.kernel = "max"});
    operators().add(BP_OP_FILL, BP_F32, {.kernel = "fill", .device_scalars = true});
    operators().add(BP_OP_FILL, BP_I32, {.kernel = "fill"});
  }
};

class QueueTest : public testing::Test {
 protected:
  using Device = QueueDevice<ManualNative>;

  void SetUp() override {
    ManualNative::reset();
    device.reset(driver.open(0, "").value());
  }
  static bp_tensor_desc view(std::vector<int64_t> shape) {
    bp_tensor_desc out{};
    out.dtype = BP_F32;
    out.rank = static_cast<uint8_t>(shape.size());
    std::copy(shape.begin(), shape.end(), out.shape);
    rules::make_dense(out);
    return out;
  }
  // Creates a plan. Returns null and sets `status` if the plugin rejects the descriptor.
  Device::Plan* plan(uint32_t op, std::vector<bp_tensor_desc> in, uint64_t flags = 0, uint32_t scalars = 0) {
    inputs = std::move(in);
    output = view({4});
    output.dtype = output_dtype;
    desc = {};
    desc.struct_size = sizeof(desc);
    desc.op = op;
    desc.inputs = inputs.data();
    desc.outputs = &output;
    desc.input_count = static_cast<uint32_t>(inputs.size());
    desc.output_count = 1;
    desc.scalar_count = scalars;
    desc.flags = flags;
    Device::Plan* out = nullptr;
    status = device->create_plan(&desc, &out, info);
    return out;
  }
  Device::Plan* add() { return plan(BP_OP_ADD, {view({4}), view({4})}); }
  Status execute(Device::Stream& stream, const Device::Plan& plan, std::vector<bp_operand> operands,
                 std::vector<bp_operand> scalars = {}) {
    bp_execution execution{};
    execution.struct_size = sizeof(execution);
    execution.desc = &desc;
    execution.inputs = operands.data();
    execution.outputs = operands.data() + desc.input_count;
    execution.scalars = scalars.data();
    if (plan.workspace_bytes != 0) {
      execution.workspace = reinterpret_cast<bp_buffer*>(buffer());
      execution.workspace_bytes = 64;
    }
    return device->execute(stream, plan, &execution);
  }
  Device::Buffer* buffer() {
    buffers.emplace_back(device->create_buffer({sizeof(bp_buffer_desc), BP_MEMORY_DEVICE, 64, 0}).value());
    return buffers.back().get();
  }
  bp_operand operand(uint64_t offset = 0) { return {reinterpret_cast<bp_buffer*>(buffer()), offset, 0}; }
  // Runs the commands that a test left in the queue, then destroys the stream.
  struct RunToTheEnd {
    ManualQueue* queue = nullptr;
    void operator()(Device::Stream* stream) const {
      while (stream->wait(0).code() == BP_TIMEOUT) queue->run();
      delete stream;
    }
  };
  std::unique_ptr<Device::Stream, RunToTheEnd> stream() {
    Device::Stream* made = device->create_stream({sizeof(bp_stream_desc), 0}).value();
    return {made, RunToTheEnd{ManualNative::queues.back()}};
  }
  // Enqueues a copy that completes with ManualNative::outcome.
  Status command(Device::Stream& on) {
    Device::Buffer *dst = buffer(), *src = buffer();
    return device->copy(on, *dst, 0, *src, 0, 4);
  }
  static void run(std::size_t queue, std::size_t count = SIZE_MAX) { ManualNative::queues[queue]->run(count); }

  static void log(void*, int32_t, const char*) {}
  bp_host host{.struct_size = sizeof(bp_host),
               .abi_version = BP_ABI_VERSION,
               .context = nullptr,
               .log = log,
               .get_interface = nullptr};
  QueueDriverOfTests driver{Host(&host)};
  std::unique_ptr<Device> device;
  std::vector<std::unique_ptr<Device::Buffer>> buffers;
  std::vector<bp_tensor_desc> inputs;
  uint16_t output_dtype = BP_F32;
  bp_tensor_desc output{};
  bp_op_desc desc{};
  bp_plan_info info{};
  Status status;
};

}  // namespace backplane::kit::test
