// SPDX-License-Identifier: Apache-2.0
// Every call into the driver that can fail, made to fail in turn: the functions of the device are looked up through a table
// that answers for the driver.
#include <type_traits>

#include "rig.hpp"

namespace {

using namespace backplane::vulkan;
namespace kit = backplane::kit;

PFN_vkGetDeviceProcAddr real_lookup = nullptr;
DeviceApi real;

// Calls that still succeed; the next one fails, and with `sticky` all that follow.
std::atomic<int64_t> calls_left{INT64_MAX};
std::atomic<VkResult> answer{VK_SUCCESS};
std::atomic<bool> sticky{false};
std::atomic<uint64_t> struck{0};

bool strikes() {
  const int64_t left = calls_left.fetch_sub(1);
  const bool now = left == 0 || (left < 0 && sticky);
  if (now) ++struck;
  return now;
}

template <auto Slot>
struct Answering;
template <class... Arguments, VkResult (VKAPI_PTR* DeviceApi::*Slot)(Arguments...)>
struct Answering<Slot> {
  static VkResult VKAPI_CALL call(Arguments... arguments) {
    return strikes() ? answer.load() : (real.*Slot)(arguments...);
  }
};

template <auto Slot, class Function>
PFN_vkVoidFunction answering(Function found) {
  real.*Slot = found;
  if constexpr (requires { Answering<Slot>::call; }) return reinterpret_cast<PFN_vkVoidFunction>(Answering<Slot>::call);
  return reinterpret_cast<PFN_vkVoidFunction>(found);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL lookup(VkDevice device, const char* name) {
  const PFN_vkVoidFunction found = real_lookup(device, name);
#define BP_VK_GLOBAL(name)
#define BP_VK_INSTANCE(name)
#define BP_VK_DEVICE(slot) \
  if (std::string_view(name) == #slot) return answering<&DeviceApi::slot>(reinterpret_cast<PFN_##slot>(found));
#include "functions.def"
#undef BP_VK_GLOBAL
#undef BP_VK_INSTANCE
#undef BP_VK_DEVICE
  return found;
}

class Faults : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped() || real_lookup != nullptr) return;
    auto& api = const_cast<InstanceApi&>(instance->api());  // before the first device is opened
    real_lookup = std::exchange(api.vkGetDeviceProcAddr, lookup);
  }
  void TearDown() override { arm(INT64_MAX, VK_SUCCESS, false); }
  static void arm(int64_t after, VkResult result, bool for_good) {
    answer = result;
    sticky = for_good;
    struck = 0;
    calls_left = after;
  }

  // Opens, runs, waits; the first failure of all that the table answered.
  kit::Status work(Rig& rig) {
    kit::Status status = rig.open(instance);
    if (status.ok()) {
      std::fill_n(rig.data(0), Rig::kElements, 1.0f);
      std::fill_n(rig.data(1), Rig::kElements, 2.0f);
    }
    for (int i = 0; status.ok() && i < 40; ++i) status = rig.enqueue();
    if (status.ok()) status = rig.wait();
    if (status.ok()) {
      EXPECT_EQ(rig.data(2)[Rig::kElements - 1], 3.0f);
    }
    return status;
  }
};

TEST_F(Faults, WithoutOneAllIsWell) {
  Rig rig;
  EXPECT_TRUE(work(rig).ok());
  EXPECT_LT(calls_left, INT64_MAX - 20) << "the table is not used";
}

TEST_F(Faults, MemoryThatRunsOutAnywhereIsToldAndComesBack) {
  int reported = 0;
  for (int64_t after = 0;; ++after) {
    ASSERT_LT(after, 1000);
    kit::Status status;
    {
      Rig rig;
      arm(after, VK_ERROR_OUT_OF_DEVICE_MEMORY, false);
      status = work(rig);
      const bool hit = struck != 0;
      arm(INT64_MAX, VK_SUCCESS, false);
      if (!hit) break;
      if (!status.ok()) {
        ++reported;
        // A batch that could not be submitted ends its stream; everything else is refused and nothing is changed.
        const bool ended = rig.stream != nullptr && !rig.stream->failure().ok();
        EXPECT_EQ(status.code(), ended ? BP_EXECUTION_FAILED : BP_OUT_OF_MEMORY) << after << ": " << status.message();
        EXPECT_NE(status.message().find("VK_ERROR_OUT_OF_DEVICE_MEMORY"), std::string::npos) << status.message();
        if (ended) {
          EXPECT_EQ(rig.enqueue().code(), BP_EXECUTION_FAILED);
          EXPECT_EQ(rig.wait().code(), BP_EXECUTION_FAILED);
        } else if (rig.plan != nullptr) {
          EXPECT_TRUE(rig.enqueue().ok());
          EXPECT_TRUE(rig.wait().ok());
        }
      }
    }
    Rig again;
    const kit::Status after_it = work(again);
    ASSERT_TRUE(after_it.ok()) << after << ": " << after_it.message();
  }
  EXPECT_GE(reported, 10);
}

TEST_F(Faults, ALostDeviceStaysLostAndTheNextOpenHasAnother) {
  int reported = 0;
  for (int64_t after = 0;; ++after) {
    ASSERT_LT(after, 1000);
    {
      Rig rig, bystander;
      arm(INT64_MAX, VK_SUCCESS, false);
      ASSERT_TRUE(bystander.open(instance).ok());
      arm(after, VK_ERROR_DEVICE_LOST, true);
      const kit::Status status = work(rig);
      const bool hit = struck != 0;
      arm(INT64_MAX, VK_SUCCESS, false);
      if (!hit) break;
      ++reported;
      EXPECT_EQ(status.code(), BP_DEVICE_LOST) << after << ": " << status.message();
      EXPECT_NE(status.message().find("open it again"), std::string::npos) << status.message();
      // Every open of the lost hardware answers so from then on, though the driver would answer again.
      for (Rig* each : {&rig, &bystander}) {
        if (each->plan == nullptr) continue;
        EXPECT_EQ(each->enqueue().code(), BP_DEVICE_LOST);
        EXPECT_EQ(each->wait().code(), BP_DEVICE_LOST);
        EXPECT_EQ(each->device->create_stream({}).status().code(), BP_DEVICE_LOST);
        EXPECT_EQ(each->device->create_buffer({sizeof(bp_buffer_desc), BP_MEMORY_HOST, 16, 0}).status().code(),
                  BP_DEVICE_LOST);
      }
    }
    Rig again;
    const kit::Status after_it = work(again);
    ASSERT_TRUE(after_it.ok()) << after << ": " << after_it.message();
  }
  EXPECT_GE(reported, 10);
}

TEST_F(Faults, ARecordThatCannotBeMadeLeavesTheEventAsItWas) {
  Rig rig;
  ASSERT_TRUE(rig.open(instance).ok());
  ASSERT_TRUE(rig.enqueue().ok());
  Event* const event = need(rig.device->create_event(0));
  ASSERT_TRUE(rig.device->record(*event, *rig.stream).ok());
  ASSERT_TRUE(rig.wait().ok());
  Rig other;
  ASSERT_TRUE(other.open(instance).ok());
  ASSERT_TRUE(other.enqueue().ok());
  Event* const passed = need(rig.device->create_event(0));
  ASSERT_TRUE(rig.device->record(*passed, *other.stream).ok());
  bool refused = false;
  for (int64_t after = 0; rig.stream->failure().ok(); ++after) {
    ASSERT_LT(after, 100);
    ASSERT_TRUE(rig.device->wait_event(*rig.stream, *passed).ok());  // so that a record must begin a batch
    arm(after, VK_ERROR_OUT_OF_HOST_MEMORY, false);
    const kit::Status status = rig.device->record(*event, *rig.stream);
    arm(INT64_MAX, VK_SUCCESS, false);
    if (!rig.stream->failure().ok()) break;  // the submission failed: the record stands for the failure
    if (!status.ok()) {
      refused = true;
      EXPECT_EQ(status.code(), BP_OUT_OF_MEMORY);
    }
    EXPECT_TRUE(rig.device->wait(*event, BP_WAIT_FOREVER).ok()) << after;
  }
  EXPECT_TRUE(refused);
  EXPECT_EQ(rig.device->wait(*event, BP_WAIT_FOREVER).code(), BP_EXECUTION_FAILED);
  for (Event* each : {event, passed}) rig.device->destroy(each);
}

}  // namespace
