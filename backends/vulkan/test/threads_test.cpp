// SPDX-License-Identifier: Apache-2.0
// Uses one device from many threads at once, for the thread sanitizer.
#include <thread>

#include "rig.hpp"

namespace backplane::vulkan::test {

namespace {

constexpr int kThreads = 4, kRounds = 24;

// Runs `body(thread)` on kThreads threads at once, and checks the returned statuses on the calling
// thread.
template <class Body>
void on_threads(const Body& body) {
  kit::Status statuses[kThreads];
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back([&, i] { statuses[i] = body(i); });
  }
  for (const kit::Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
}

TEST_F(OnDevice, StreamsOfThreadsWaitForEachOthersEvents) {
  Rig rig;
  ASSERT_TRUE(rig.open(instance).ok());
  std::fill_n(rig.data(0), Rig::kElements, 2.0f);
  std::fill_n(rig.data(1), Rig::kElements, 1.0f);
  Device::Stream* streams[kThreads] = {};
  Device::Event* events[kThreads] = {};
  Device::Buffer* outs[kThreads] = {};
  for (int i = 0; i < kThreads; ++i) {
    streams[i] = need(rig.device->create_stream({}));
    events[i] = need(rig.device->create_event(0));
    outs[i] =
        need(rig.device->create_buffer({sizeof(bp_buffer_desc), BP_MEMORY_HOST, Rig::kElements * sizeof(float), 0}));
  }
  on_threads([&](int i) {
    const bp_operand operands[] = {whole(rig.buffers[0]), whole(rig.buffers[1]), whole(outs[i])};
    const auto add = [&] { return enqueue(*rig.device, *streams[i], *rig.plan, rig.desc, operands); };
    kit::Status status;
    for (int round = 0; status.ok() && round < kRounds; ++round) {
      status = add();
      if (status.ok()) status = rig.device->record(*events[i], *streams[i]);
      // Another thread calls record() for `other` concurrently. The stream waits for the latest
      // record.
      const Device::Event& other = *events[(i + 1) % kThreads];
      if (status.ok()) status = rig.device->wait_event(*streams[i], other);
      if (status.ok()) status = add();
      if (status.ok() && round % 8 == 0) status = rig.device->wait(other, BP_WAIT_FOREVER);
    }
    return status.ok() ? streams[i]->wait(BP_WAIT_FOREVER) : status;
  });
  for (int i = 0; i < kThreads; ++i) {
    EXPECT_EQ(reinterpret_cast<float*>(outs[i]->memory->mapped)[Rig::kElements - 1], 3.0f);
    rig.device->destroy(events[i]);
    rig.device->destroy(streams[i]);
    rig.device->destroy(outs[i]);
  }
}

TEST_F(OnDevice, ThreadsOpenMakePlansAndCloseAtOnce) {
  on_threads([&](int) {
    kit::Status status;
    for (int round = 0; status.ok() && round < kRounds / 4; ++round) {
      Rig rig;
      status = rig.open(instance);
      for (uint32_t op = BP_OP_SUB; status.ok() && op <= BP_OP_MUL; ++op) {
        bp_op_desc desc = rig.desc;
        desc.op = op;
        bp_plan_info info{};
        Device::Plan* plan = nullptr;
        status = rig.device->create_plan(&desc, &plan, info);
        if (plan != nullptr) rig.device->destroy(plan);
      }
      if (status.ok()) status = rig.enqueue();
      if (status.ok()) status = rig.wait();
    }
    return status;
  });
}

// Several streams of a device execute one plan.
TEST_F(OnDevice, OnePlanServesManyStreams) {
  Rig rig;
  ASSERT_TRUE(rig.open(instance).ok());
  std::fill_n(rig.data(0), Rig::kElements, 1.0f);
  std::fill_n(rig.data(1), Rig::kElements, 2.0f);
  on_threads([&](int) -> kit::Status {
    auto stream = rig.device->create_stream({});
    auto out = rig.device->create_buffer({sizeof(bp_buffer_desc), BP_MEMORY_HOST, Rig::kElements * sizeof(float), 0});
    if (!stream.ok() || !out.ok()) return stream.ok() ? out.status() : stream.status();
    const bp_operand operands[] = {whole(rig.buffers[0]), whole(rig.buffers[1]), whole(out.value())};
    kit::Status status;
    for (int round = 0; status.ok() && round < 10 * kRounds; ++round)
      status = enqueue(*rig.device, *stream.value(), *rig.plan, rig.desc, operands);
    if (status.ok()) status = stream.value()->wait(BP_WAIT_FOREVER);
    if (status.ok() && reinterpret_cast<float*>(out.value()->memory->mapped)[Rig::kElements - 1] != 3.0f)
      status = {BP_INTERNAL, "a wrong sum"};
    rig.device->destroy(stream.value());
    rig.device->destroy(out.value());
    return status;
  });
}

}  // namespace

}  // namespace backplane::vulkan::test
