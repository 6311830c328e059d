// SPDX-License-Identifier: Apache-2.0
// What the tests on a device share: the first device opened, a stream, buffers and a plan of one operator.
#pragma once

#include <gtest/gtest.h>

#include "device.hpp"

namespace backplane::vulkan {

// Skips where the loader finds no device.
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

// An opened device with one stream, and f32 vectors to add; whatever it lacks stays null. Opened once, not copied.
struct Rig {
  static constexpr int64_t kElements = 256;
  Device* device = nullptr;
  Stream* stream = nullptr;
  Buffer* buffers[3] = {};
  Plan* plan = nullptr;
  bp_tensor_desc views[3] = {};
  bp_op_desc desc{};
  std::vector<std::string> lines;  // of the log

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
    for (Buffer* buffer : buffers) {
      if (buffer != nullptr) device->destroy(buffer);
    }
    delete std::exchange(device, nullptr);
  }

  // Everything, step by step; the first failure.
  kit::Status open(const std::shared_ptr<const Instance>& instance) {
    const auto keep = [](auto made, auto*& place) {
      if (made.ok()) place = made.value();
      return made.status();
    };
    kit::Status status =
        keep(Device::open(instance, 0, [this](int32_t, const std::string& line) { lines.push_back(line); }), device);
    if (status.ok()) status = keep(device->create_stream({}), stream);
    for (Buffer*& buffer : buffers) {
      if (status.ok())
        status =
            keep(device->create_buffer({sizeof(bp_buffer_desc), BP_MEMORY_HOST, kElements * sizeof(float), 0}), buffer);
    }
    bp_plan_info info{};
    if (status.ok()) status = device->create_plan(&desc, &plan, info);
    return status;
  }

  float* data(int i) const { return reinterpret_cast<float*>(buffers[i]->mapped); }

  kit::Status enqueue() const { return enqueue(desc); }
  kit::Status enqueue(const bp_op_desc& described) const {
    bp_operand operands[3] = {};
    for (int i = 0; i < 3; ++i) operands[i].buffer = reinterpret_cast<bp_buffer*>(buffers[i]);
    bp_execution execution{};
    execution.struct_size = sizeof(execution);
    execution.desc = &described;
    execution.inputs = operands;
    execution.outputs = operands + 2;
    return device->execute(*stream, *plan, &execution);
  }
  kit::Status wait() const { return stream->wait(BP_WAIT_FOREVER); }
};

}  // namespace backplane::vulkan
