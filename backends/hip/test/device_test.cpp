// SPDX-License-Identifier: Apache-2.0
// Tests the parts of the hip plugin that concern only HIP: the caller's device and last failure, the numbers of HIP 6,
// and registered memory with another address.
#include "gpu_host/test/device_test.hpp"
#include "runtime/stack.hpp"

namespace backplane::gpu_host::test {

Platform& platform() { return hip::platform(); }

namespace {

// Sets an environment variable of the test driver until the end of the scope.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Setting() { ::unsetenv(name_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* const name_;
};

TEST(Graphs, ADriverWithoutTheirFunctionsHasNone) {
  const hip::Api api;
  EXPECT_FALSE(hip::Stack(api).has_graphs());
}

TEST_F(DeviceTest, TheDriverHasGraphs) { EXPECT_TRUE(context().stack().has_graphs()); }

TEST_F(DeviceTest, TheDeviceOfTheCallerStays) {
  const hip::Api& hip = *hip::Api::load().value();
  ASSERT_EQ(hip.hipSetDevice(1), hipSuccess);
  use_device();
  int device = -1;
  ASSERT_EQ(hip.hipGetDevice(&device), hipSuccess);
  EXPECT_EQ(device, 1);
  ASSERT_EQ(hip.hipSetDevice(0), hipSuccess);
}

TEST_F(DeviceTest, TheCallerSeesNoFailureOfThePlugin) {
  use_device();
  EXPECT_EQ(hip::Api::load().value()->hipGetLastError(), hipSuccess);
}

TEST_F(DeviceTest, TheKindsOfMemoryAreKnownWithHip6) {
  const Setting version("TEST_DRIVER_VERSION", "60000000");
  simt::Buffer *const host = allocate(BP_MEMORY_HOST), *const device = allocate(BP_MEMORY_DEVICE);
  EXPECT_EQ(owner_of(host->address), AddressKind::Owner::kHost);
  EXPECT_EQ(owner_of(device->address), AddressKind::Owner::kDevice);
  for (simt::Buffer* buffer : {host, device}) context().free(buffer);
}

TEST_F(DeviceTest, RegisteredMemoryWithAnotherAddressIsRefused) {
  const Setting lacks("TEST_DRIVER_LACKS", "addresses");
  std::vector<std::byte> memory(kBytes);
  simt::Buffer* imported = nullptr;
  const kit::Status status = import(import_of(memory.data(), kBytes), imported);
  EXPECT_EQ(status.code(), BP_UNSUPPORTED);
  EXPECT_THAT(status.message(), testing::HasSubstr("another address"));
  EXPECT_EQ(owner_of(memory.data()), AddressKind::Owner::kNone);
}

}  // namespace

}  // namespace backplane::gpu_host::test
