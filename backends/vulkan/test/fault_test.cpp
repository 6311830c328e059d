// SPDX-License-Identifier: Apache-2.0
// Makes each fallible driver call fail in turn. The errors are exhaustion of host memory,
// exhaustion of device memory, and device loss. functions.def lists the calls.
#include <gmock/gmock.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "rig.hpp"
#include "runtime/pipelines.hpp"
#include "watched_driver.hpp"

namespace backplane::vulkan::test {

namespace {

namespace fs = std::filesystem;

// Calls that enumerate devices. All other calls need an open device.
const std::set<std::string> kOfInstance = {
    "vkEnumerateInstanceVersion",         "vkEnumerateInstanceExtensionProperties",
    "vkEnumerateInstanceLayerProperties", "vkCreateInstance",
    "vkEnumeratePhysicalDevices",         "vkEnumerateDeviceExtensionProperties"};
// Calls that only shared semaphores make (external_test.cpp).
const std::set<std::string> kOfSemaphores = {"vkSignalSemaphore"};

class Faults : public testing::Test {
 protected:
  void SetUp() override {
    // The plugin uses no timestamps on a CPU, because the timestamps of Mesa's CPU driver are 0. The device therefore
    // claims to be a GPU, so that the test covers the calls for timestamps.
    watched::change_properties = [](VkPhysicalDeviceProperties2& out) {
      out.properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    };
    static auto found = watched::instance();
    if (!found.ok()) GTEST_SKIP() << found.status().message();
    instance = found.value();
    std::string pattern = testing::TempDir() + "backplane_faults_XXXXXX";
    folder = ::mkdtemp(pattern.data());
    ::setenv(kCacheSetting, (folder / "used").c_str(), 1);
  }
  void TearDown() override {
    watched::disarm();
    EXPECT_EQ(watched::forgotten(), "");
    fs::remove_all(folder);
  }

  // Stores a pipeline cache file as another process would. If `more` is true, the data differs from the data of a call
  // with `more` = false, so the plugin must merge the file.
  void store_as_another(bool more) const {
    const CacheFile file(folder / "used", PipelineCache::key_of(instance->devices()[0]));
    // No driver recognises the data, so an empty cache is created.
    ASSERT_EQ(file.store(std::vector<std::byte>(more ? 64 : 48, std::byte{1})), "");
  }

  // Opens the device, enqueues executions, waits, measures the elapsed time and imports memory.
  // Returns the first failure.
  kit::Status work(Rig& rig) const {
    kit::Status status = rig.open(instance);
    if (!status.ok()) return status;
    std::fill_n(rig.data(0), Rig::kElements, 1.0f);
    std::fill_n(rig.data(1), Rig::kElements, 2.0f);
    Device::Event* events[2] = {};
    for (Device::Event*& event : events) {
      if (status.ok()) {
        auto made = rig.device->create_event(BP_EVENT_TIMING);
        if (made.ok()) event = made.value();
        status = made.status();
      }
      if (status.ok()) status = rig.device->record(*event, *rig.stream);
      for (int i = 0; status.ok() && i < 20; ++i) status = rig.enqueue();
    }
    if (status.ok()) status = rig.wait();
    if (status.ok()) {
      EXPECT_EQ(rig.data(2)[Rig::kElements - 1], 3.0f);
      status = rig.device->elapsed(*events[0], *events[1]).status();
    }
    for (Device::Event* event : events) rig.device->destroy(event);
    if (status.ok() && rig.device->imports()) {
      alignas(4096) static std::array<std::byte, 4096> page;
      uint32_t kind = 0;
      auto imported = rig.device->import_memory(
          {sizeof(bp_import_desc), BP_IMPORT_HOST, reinterpret_cast<uint64_t>(page.data()), page.size()}, kind);
      if (imported.ok()) rig.device->destroy(imported.value());
      status = imported.status();
    }
    return status;
  }

  // Checks that work() succeeds. Then simulates a device loss, so that the next open creates a new
  // VkDevice.
  void works_again(const std::string& after) const {
    Rig rig;
    const kit::Status status = work(rig);
    ASSERT_TRUE(status.ok()) << after << ": " << status.message();
    EXPECT_THAT(rig.lines, testing::IsEmpty()) << after;
    watched::arm(0, VK_ERROR_DEVICE_LOST, false);
    EXPECT_EQ(rig.device->create_stream({}).status().code(), BP_DEVICE_LOST);
    watched::disarm();
  }

  // Makes each call fail in turn, and checks the outcome with `round(status, rig, second, name)`. `second` is a second
  // rig on the same device, which is opened only if work() succeeds. Cache files of another process appear before the
  // first open and before the close, so that the plugin reads and merges caches. At the end, every fallible call except
  // those in kOfInstance and kOfSemaphores must have failed once.
  template <class Round>
  void fail_each_call(VkResult result, bool forever, const Round& round) {
    works_again("before");
    std::set<std::string> names;
    for (int64_t after = 0;; ++after) {
      ASSERT_LT(after, 1000);
      store_as_another(false);
      {
        Rig rig, second;
        watched::arm(after, result, forever);
        kit::Status status = work(rig);
        if (status.ok()) status = second.open(instance);
        const std::string name = watched::failed_call();
        if (!name.empty()) {
          watched::disarm();
          round(status, rig, second, name);
        }
        store_as_another(true);
        second.close();
        rig.close();
        watched::disarm();
        if (watched::failed_call().empty()) break;
        names.insert(watched::failed_call());
        if (name.empty()) kept_as_it_was(watched::failed_call(), rig, second);
      }
      works_again(watched::failed_call());
    }
    for (const std::string& name : watched::fallible()) {
      if (kOfInstance.contains(name) || kOfSemaphores.contains(name)) continue;
      EXPECT_TRUE(names.contains(name)) << name << " never failed";
    }
  }

  // Checks the outcome if the call `name` failed during the close. Only the log reports such a failure. The file of the
  // other process is kept, except if the call is vkDeviceWaitIdle.
  void kept_as_it_was(const std::string& name, const Rig& rig, const Rig& second) const {
    const CacheFile file(folder / "used", PipelineCache::key_of(instance->devices()[0]));
    std::string objection;
    EXPECT_EQ(file.load(objection).size(), name == "vkDeviceWaitIdle" ? 32u : 64u) << name << objection;
    std::vector<std::string> lines = rig.lines;
    lines.insert(lines.end(), second.lines.begin(), second.lines.end());
    if (name == "vkDeviceWaitIdle" || name == "vkGetSemaphoreCounterValue")
      return;  // nothing is logged, because the plugin succeeds with a different call
    EXPECT_THAT(lines,
                testing::ElementsAre(testing::AllOf(testing::HasSubstr("are not kept"), testing::HasSubstr(name))))
        << name;
  }

  void exhaust_each(VkResult result, const char* said) {
    std::set<std::string> silent;
    fail_each_call(result, false, [&](const kit::Status& status, Rig& rig, Rig& second, const std::string& name) {
      if (status.ok() || status.code() == BP_NOT_READY) {
        silent.insert(name);
        return;
      }
      // If a batch cannot be submitted, its stream fails permanently. Any other failure changes
      // nothing.
      const bool ended = rig.stream != nullptr && !rig.stream->failure().ok();
      EXPECT_EQ(status.code(), ended ? BP_EXECUTION_FAILED : BP_OUT_OF_MEMORY) << name << ": " << status.message();
      EXPECT_THAT(status.message(), testing::AllOf(testing::HasSubstr(said), testing::HasSubstr(name)));
      if (ended) {
        EXPECT_EQ(rig.enqueue().code(), BP_EXECUTION_FAILED);
        EXPECT_EQ(rig.wait().code(), BP_EXECUTION_FAILED);
      } else if (rig.plan != nullptr) {
        EXPECT_TRUE(rig.enqueue().ok()) << name;
        EXPECT_TRUE(rig.wait().ok()) << name;
      }
      if (second.plan != nullptr) {
        EXPECT_TRUE(second.enqueue().ok()) << name;
      }
    });
    // The plugin reports no failure of these calls. Instead, the plugin polls timelines, compiles pipelines without a
    // cache, or closes the device, which returns no status.
    EXPECT_THAT(silent, testing::IsSubsetOf({"vkGetSemaphoreCounterValue", "vkWaitSemaphores", "vkCreatePipelineCache",
                                             "vkDeviceWaitIdle"}));
  }

  std::shared_ptr<const Instance> instance;
  fs::path folder;
};

TEST_F(Faults, WithoutOneAllIsWell) {
  watched::arm(INT64_MAX, VK_SUCCESS, false);
  Rig rig;
  const kit::Status status = work(rig);
  EXPECT_TRUE(status.ok()) << status.message();
  const auto living = watched::living();
  // The rig's three buffers share a block. The stream has two buffers of other sizes.
  EXPECT_EQ(living.at("vkCreateBuffer"), 3) << "the table is not used";
}

TEST_F(Faults, HostMemoryThatRunsOutAnywhereIsReportedAndRecovered) {
  exhaust_each(VK_ERROR_OUT_OF_HOST_MEMORY, "VK_ERROR_OUT_OF_HOST_MEMORY");
}

TEST_F(Faults, DeviceMemoryThatRunsOutAnywhereIsReportedAndRecovered) {
  exhaust_each(VK_ERROR_OUT_OF_DEVICE_MEMORY, "VK_ERROR_OUT_OF_DEVICE_MEMORY");
}

TEST_F(Faults, ALostDeviceStaysLostAndTheNextOpenHasAnother) {
  fail_each_call(
      VK_ERROR_DEVICE_LOST, true, [&](const kit::Status& status, Rig& rig, Rig& second, const std::string& name) {
        EXPECT_EQ(status.code(), BP_DEVICE_LOST) << name << ": " << status.message();
        EXPECT_THAT(status.message(), testing::HasSubstr("open it again"));
        // Both open devices report the loss, even if the driver recovers.
        for (Rig* each : {&rig, &second}) {
          if (each->plan == nullptr) continue;
          EXPECT_EQ(each->enqueue().code(), BP_DEVICE_LOST);
          EXPECT_EQ(each->wait().code(), BP_DEVICE_LOST);
          EXPECT_EQ(each->device->create_stream({}).status().code(), BP_DEVICE_LOST);
          EXPECT_EQ(each->device->create_buffer({sizeof(bp_buffer_desc), BP_MEMORY_HOST, 16, 0}).status().code(),
                    BP_DEVICE_LOST);
        }
      });
}

// If a call fails during enumeration, there is no device. The error states the reason.
TEST_F(Faults, FailuresBeforeADeviceExistsAreReported) {
  for (const VkResult result : {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_DEVICE_LOST}) {
    std::set<std::string> names;
    for (int64_t after = 0;; ++after) {
      ASSERT_LT(after, 100);
      watched::arm(after, result, false);
      auto found = watched::instance();
      watched::disarm();
      if (watched::failed_call().empty()) break;
      names.insert(watched::failed_call());
      ASSERT_FALSE(found.ok()) << watched::failed_call();
      EXPECT_EQ(found.status().code(), BP_UNAVAILABLE);
      EXPECT_THAT(found.status().message(),
                  testing::AllOf(testing::HasSubstr(watched::failed_call()), testing::HasSubstr("VK_ERROR_")));
    }
    EXPECT_THAT(names, testing::IsSubsetOf(kOfInstance));
    EXPECT_GE(names.size(), kOfInstance.size() - 1);  // the call that lists layers is made only for validation
  }
}

// After a device is closed, only the objects that the process keeps are left, no matter how often
// the device was opened.
TEST_F(Faults, AClosedDeviceKeepsOnlyDocumentedObjects) {
  using testing::Pair;
  works_again("before");
  std::map<std::string, int> before;
  for (int round = 0; round < 3; ++round) {
    Rig rig;
    const kit::Status status = work(rig);
    ASSERT_TRUE(status.ok()) << status.message();
    rig.close();
    auto living = watched::living();
    living.erase("vkCreateInstance");
    if (round > 0) {
      EXPECT_EQ(living, before);
    }
    before = living;
    EXPECT_THAT(living,
                testing::UnorderedElementsAre(Pair("vkCreateDevice", 1), Pair("vkCreatePipelineLayout", 1),
                                              Pair("vkCreatePipelineCache", 1),
                                              Pair("vkCreateComputePipelines", 2),  // the pipelines of one addition
                                              Pair("vkCreateSemaphore", 1), Pair("vkCreateQueryPool", 2)));
  }
}

// watched::forgotten() reports a buffer that is not destroyed.
TEST_F(Faults, AForgottenBufferIsFound) {
  {
    auto device = LogicalDevice::create(instance, 0);
    ASSERT_TRUE(device.ok()) << device.status().message();
    auto info = chained<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
    info.size = 16;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
    VkBuffer buffer = VK_NULL_HANDLE;
    const DeviceApi& api = device.value()->api();
    ASSERT_EQ(api.vkCreateBuffer(device.value()->handle(), &info, nullptr, &buffer), VK_SUCCESS);
    ASSERT_EQ(api.vkCreateBuffer(device.value()->handle(), &info, nullptr, &buffer), VK_SUCCESS);
    api.vkDestroyBuffer(device.value()->handle(), buffer, nullptr);
    EXPECT_EQ(watched::forgotten(), "");
  }
  EXPECT_EQ(watched::forgotten(), "vkCreateBuffer made what is left at vkDestroyDevice\n");
}

TEST_F(Faults, ARecordThatCannotBeMadeLeavesTheEventAsItWas) {
  Rig rig;
  ASSERT_TRUE(rig.open(instance).ok());
  ASSERT_TRUE(rig.enqueue().ok());
  Device::Event* const event = need(rig.device->create_event(0));
  ASSERT_TRUE(rig.device->record(*event, *rig.stream).ok());
  ASSERT_TRUE(rig.wait().ok());
  Device::Stream* const other = need(rig.device->create_stream({}));
  ASSERT_TRUE(rig.enqueue(rig.desc, *other).ok());
  Device::Event* const passed = need(rig.device->create_event(0));
  ASSERT_TRUE(rig.device->record(*passed, *other).ok());
  bool refused = false;
  for (int64_t after = 0; rig.stream->failure().ok(); ++after) {
    ASSERT_LT(after, 100);
    // Because the stream waits for `passed`, the following record() must begin a batch.
    ASSERT_TRUE(rig.device->wait_event(*rig.stream, *passed).ok());
    watched::arm(after, VK_ERROR_OUT_OF_HOST_MEMORY, false);
    const kit::Status status = rig.device->record(*event, *rig.stream);
    watched::disarm();
    if (!rig.stream->failure().ok()) break;  // the submission failed, not record() itself
    if (!status.ok()) {
      refused = true;
      EXPECT_EQ(status.code(), BP_OUT_OF_MEMORY);
    }
    EXPECT_TRUE(rig.device->wait(*event, BP_WAIT_FOREVER).ok()) << after;
  }
  EXPECT_TRUE(refused);
  EXPECT_TRUE(rig.device->wait(*event, BP_WAIT_FOREVER).ok()) << "the event keeps its previous point";
  for (Device::Event* each : {event, passed}) rig.device->destroy(each);
  rig.device->destroy(other);
}

}  // namespace

}  // namespace backplane::vulkan::test
