// SPDX-License-Identifier: Apache-2.0
// Calls the slots of the plugin plain_c directly: plain_c_test LIBRARY.
#include <backplane/plugin.h>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

namespace {

const char* library = nullptr;

class PlainC : public testing::Test {
 protected:
  void SetUp() override {
    module_ = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(module_, nullptr) << dlerror();
    const auto query = reinterpret_cast<decltype(&bp_plugin_query)>(dlsym(module_, "bp_plugin_query"));
    ASSERT_NE(query, nullptr) << dlerror();
    bp_host host{};
    host.struct_size = sizeof(host);
    host.abi_version = BP_ABI_VERSION;
    error.struct_size = sizeof(error);
    ASSERT_EQ(query(&host, &plugin_, &error), BP_OK) << error.message;
    ASSERT_EQ(plugin_->device_open(plugin_, 0, nullptr, &device, &error), BP_OK) << error.message;
    api = plugin_->device_api;
  }
  void TearDown() override {
    if (device != nullptr) api->close(device);
    if (plugin_ != nullptr) plugin_->shutdown(plugin_);
    if (module_ != nullptr) dlclose(module_);
  }

  bp_status create(uint64_t bytes, bp_buffer** out) const {
    bp_buffer_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.kind = BP_MEMORY_DEVICE;
    desc.bytes = bytes;
    return api->buffer_create(device, &desc, out, nullptr);
  }
  bp_memory_info memory() const {
    bp_memory_info info{};
    info.struct_size = sizeof(info);
    EXPECT_EQ(api->memory_info(device, BP_MEMORY_DEVICE, &info, nullptr), BP_OK);
    return info;
  }

  bp_error error{};
  bp_device* device = nullptr;
  const bp_device_api* api = nullptr;

 private:
  void* module_ = nullptr;
  const bp_plugin* plugin_ = nullptr;
};

TEST_F(PlainC, AnAllocationThatIsTooLargeDoesNotDisturbOtherThreads) {
  bp_buffer* kept = nullptr;
  ASSERT_EQ(create(64, &kept), BP_OK);
  const uint64_t total = memory().total_bytes;
  std::atomic<bool> ends = false;
  std::atomic<int> created = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      bp_buffer* never = nullptr;
      while (!ends) created += create(total, &never) == BP_OK ? 1 : 0;
    });
  }
  // The threads disturb each other only while they run at the same time. On a busy machine, this may take a while.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (std::chrono::steady_clock::now() < end && !HasFailure()) {
    EXPECT_EQ(memory().free_bytes, total - 64);
    bp_buffer* small = nullptr;
    EXPECT_EQ(create(64, &small), BP_OK);
    if (small != nullptr) api->buffer_destroy(device, small);
  }
  ends = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(created, 0);
  api->buffer_destroy(device, kept);
  EXPECT_EQ(memory().free_bytes, total);
}

TEST_F(PlainC, AnExecutionWithAnUnknownFieldIsAnInvalidArgument) {
  struct Longer {
    bp_execution known;
    uint64_t unknown;
  } longer{};
  longer.known.struct_size = sizeof(longer);
  longer.unknown = 1;
  EXPECT_EQ(api->plan_execute(device, nullptr, nullptr, &longer.known, &error), BP_INVALID_ARGUMENT);
  EXPECT_EQ(error.status, BP_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(error.message, "bp_execution"), nullptr) << error.message;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  library = argc > 1 ? argv[1] : "";
  return RUN_ALL_TESTS();
}
