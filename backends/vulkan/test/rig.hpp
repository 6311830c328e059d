// SPDX-License-Identifier: Apache-2.0
// Fixtures for tests on a device: the first device, a stream, buffers and a plan.
#pragma once

#include <gtest/gtest.h>

#include "runtime/device.hpp"

namespace backplane::vulkan::test {

// Fixture for tests that need a device. The tests are skipped if the loader finds no device.
class OnDevice : public testing::Test {
 protected:
  void SetUp() override {
    auto found = Instance::shared();
    if (!found.ok()) GTEST_SKIP() << found.status().message();
    instance = found.value();
  }
  std::shared_ptr<const Instance> instance;
};

template <class T>
T* need(kit::Result<T*> made) {
  if (!made.ok()) throw std::runtime_error(made.status().message());
  return made.value();
}

inline bp_operand whole(Device::Buffer* buffer) { return {reinterpret_cast<bp_buffer*>(buffer), 0, 0}; }

// Enqueues an execution. `operands` contains the inputs of `desc`, followed by the outputs.
inline kit::Status enqueue(Device& device, Device::Stream& stream, const Device::Plan& plan, const bp_op_desc& desc,
                           const bp_operand* operands, Device::Buffer* workspace = nullptr) {
  bp_execution execution{};
  execution.struct_size = sizeof(execution);
  execution.desc = &desc;
  execution.inputs = operands;
  execution.outputs = operands + desc.input_count;
  execution.workspace = reinterpret_cast<bp_buffer*>(workspace);
  execution.workspace_bytes = workspace == nullptr ? 0 : workspace->bytes;
  return device.execute(stream, plan, &execution);
}

// Executes `desc` with a plan and workspace that exist only for this call, and waits for
// completion.
inline kit::Status execute_once(Device& device, Device::Stream& stream, const bp_op_desc& desc,
                                const bp_operand* operands) {
  Device::Plan* plan = nullptr;
  bp_plan_info info{};
  kit::Status status = device.create_plan(&desc, &plan, info);
  if (!status.ok()) return status;
  Device::Buffer* workspace = nullptr;
  if (info.workspace_bytes != 0)
    workspace = need(device.create_buffer({sizeof(bp_buffer_desc), BP_MEMORY_DEVICE, info.workspace_bytes, 0}));
  status = enqueue(device, stream, *plan, desc, operands, workspace);
  if (status.ok()) status = stream.wait(BP_WAIT_FOREVER);
  device.destroy(plan);
  if (workspace != nullptr) device.destroy(workspace);
  return status;
}

// An open device with a stream, and f32 vectors to add. Members are null if their creation failed.
// A rig is opened once and not copied.
struct Rig {
  static constexpr int64_t kElements = 256;
  Device* device = nullptr;
  Device::Stream* stream = nullptr;
  Device::Buffer* buffers[3] = {};
  Device::Plan* plan = nullptr;
  bp_tensor_desc views[3] = {};
  bp_op_desc desc{};
  std::vector<std::string> lines;  // lines of the log

  Rig() {
    for (bp_tensor_desc& view : views) {
      view.dtype = BP_F32;
      view.rank = 1;
      view.shape[0] = kElements;
      view.strides[0] = 1;
    }
    desc.struct_size = sizeof(desc);
    desc.op = BP_OP_ADD;
    desc.inputs = views;
    desc.input_count = 2;
    desc.outputs = views + 2;
    desc.output_count = 1;
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;
  ~Rig() { close(); }
  void close() {
    if (device == nullptr) return;
    if (plan != nullptr) device->destroy(plan);
    if (stream != nullptr) device->destroy(stream);
    for (Device::Buffer* buffer : buffers) {
      if (buffer != nullptr) device->destroy(buffer);
    }
    delete std::exchange(device, nullptr);
  }

  // Opens the device and creates the members in order. Returns the first failure.
  kit::Status open(const std::shared_ptr<const Instance>& instance) {
    const auto keep = [](auto made, auto*& target) {
      if (made.ok()) target = made.value();
      return made.status();
    };
    kit::Status status =
        keep(open_device(instance, 0, [this](int32_t, const std::string& line) { lines.push_back(line); }), device);
    if (status.ok()) status = keep(device->create_stream({}), stream);
    for (Device::Buffer*& buffer : buffers) {
      if (status.ok())
        status =
            keep(device->create_buffer({sizeof(bp_buffer_desc), BP_MEMORY_HOST, kElements * sizeof(float), 0}), buffer);
    }
    bp_plan_info info{};
    if (status.ok()) status = device->create_plan(&desc, &plan, info);
    return status;
  }

  float* data(int i) const { return reinterpret_cast<float*>(buffers[i]->memory->mapped); }

  kit::Status enqueue() const { return enqueue(desc); }
  kit::Status enqueue(const bp_op_desc& described) const { return enqueue(described, *stream); }
  kit::Status enqueue(const bp_op_desc& described, Device::Stream& on) const {
    const bp_operand operands[] = {whole(buffers[0]), whole(buffers[1]), whole(buffers[2])};
    return test::enqueue(*device, on, *plan, described, operands);
  }
  kit::Status wait() const { return stream->wait(BP_WAIT_FOREVER); }
};

class OnRig : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) return;
    ASSERT_TRUE(rig.open(instance).ok());
  }
  Rig rig;
};

}  // namespace backplane::vulkan::test
