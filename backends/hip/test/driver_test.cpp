// SPDX-License-Identifier: Apache-2.0
// Tests the rules of the HIP test driver that concern only HIP: the current device, the last failure, captures, bundles
// and flags.
#include "gpu_host/test/driver_test.hpp"

#include <thread>

#include "runtime/stack.hpp"

namespace backplane::gpu_host::test {

Platform& platform() { return hip::platform(); }

using testing::HasSubstr;

class HipDriver : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    if (!IsSkipped()) hip = hip::Api::load().value();
  }
  void TearDown() override {
    if (hip != nullptr) (void)hip->hipGetLastError();
    DriverTest::TearDown();
  }
  const hip::Api* hip = nullptr;
};

TEST_F(HipDriver, AThreadBeginsWithADevice) {
  std::thread([&] {
    int device = -1;
    EXPECT_EQ(hip->hipGetDevice(&device), hipSuccess);
    EXPECT_EQ(device, 0);
  }).join();
}

TEST_F(HipDriver, ReportsAThreadThatDoesNotRestoreItsDevice) {
  std::thread([&] { EXPECT_EQ(hip->hipSetDevice(1), hipSuccess); }).join();
  EXPECT_THAT(violations(), HasSubstr("hipSetDevice: a thread ends, and did not restore its context"));
}

TEST_F(HipDriver, ReportsAThreadThatDoesNotRestoreItsCaptureMode) {
  std::thread([&] {
    auto mode = hipStreamCaptureModeRelaxed;
    EXPECT_EQ(hip->hipThreadExchangeStreamCaptureMode(&mode), hipSuccess);
  }).join();
  EXPECT_THAT(violations(), HasSubstr("did not restore its capture mode"));
}

TEST_F(HipDriver, ReportsAThreadThatDoesNotResetItsLastFailure) {
  std::thread([&] {
    EXPECT_EQ(hip->hipSetDevice(99), hipErrorInvalidDevice);
    EXPECT_THAT(violations(), HasSubstr("no device has this number"));
  }).join();
  EXPECT_THAT(violations(), HasSubstr("did not reset its last failure"));
}

TEST_F(HipDriver, StoresTheLastFailureUntilItIsRead) {
  EXPECT_EQ(hip->hipFree(this), hipErrorInvalidValue);
  EXPECT_THAT(violations(), HasSubstr("not that of an allocation"));
  int device = -1;
  EXPECT_EQ(hip->hipGetDevice(&device), hipSuccess);
  EXPECT_EQ(hip->hipGetLastError(), hipErrorInvalidValue);
  EXPECT_EQ(hip->hipGetLastError(), hipSuccess);
}

TEST_F(HipDriver, ReportsUnsafeCallsDuringACapture) {
  ::setenv("TEST_DRIVER_CAPTURE", "1", 1);
  auto mode = hipStreamCaptureModeGlobal;
  EXPECT_EQ(hip->hipThreadExchangeStreamCaptureMode(&mode), hipSuccess);
  EXPECT_EQ(mode, hipStreamCaptureModeRelaxed);
  void* memory = nullptr;
  EXPECT_EQ(hip->hipMalloc(&memory, kBytes), hipErrorStreamCaptureUnsupported);
  EXPECT_THAT(violations(), HasSubstr("captures a stream"));
  EXPECT_EQ(hip->hipThreadExchangeStreamCaptureMode(&mode), hipSuccess);
  EXPECT_EQ(hip->hipMalloc(&memory, kBytes), hipSuccess);
  EXPECT_EQ(hip->hipFree(memory), hipSuccess);
  ::unsetenv("TEST_DRIVER_CAPTURE");
}

TEST_F(HipDriver, RejectsDestroyedEvents) {
  hipEvent_t gone = nullptr;
  ASSERT_EQ(hip->hipEventCreateWithFlags(&gone, 0), hipSuccess);
  ASSERT_EQ(hip->hipEventDestroy(gone), hipSuccess);
  EXPECT_EQ(hip->hipEventQuery(gone), hipErrorInvalidHandle);
  EXPECT_EQ(hip->hipEventSynchronize(gone), hipErrorInvalidHandle);
  EXPECT_THAT(violations(), HasSubstr("an event is used that was destroyed"));
}

TEST_F(HipDriver, RejectsStreamsThatWaitForTheDefaultStream) {
  hipStream_t made = nullptr;
  EXPECT_EQ(hip->hipStreamCreateWithPriority(&made, 0, 0), hipErrorInvalidValue);
  EXPECT_THAT(violations(), HasSubstr("the default stream"));
}

// hipcc compiles the kernels for groups of at most 256 threads.
TEST_F(HipDriver, LimitsGroups) {
  expect_violation(launch(kernel(), nullptr, 512), test_driver::Result::kInvalidValue, "too many threads");
}

TEST_F(HipDriver, ABundleNeedsCodeForTheDevice) {
  const std::string architecture = std::getenv("TEST_DRIVER_ARCHITECTURE");
  ::setenv("TEST_DRIVER_ARCHITECTURE", "gfx803", 1);
  const kit::Status status = stack().load_module(stack().image_of("copy_iota_u32")).status();
  EXPECT_EQ(status.vendor_code(), hipErrorNoBinaryForGpu);
  EXPECT_EQ(status.code(), BP_UNSUPPORTED);
  ::setenv("TEST_DRIVER_ARCHITECTURE", architecture.c_str(), 1);
}

}  // namespace backplane::gpu_host::test
