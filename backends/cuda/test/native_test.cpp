// SPDX-License-Identifier: Apache-2.0
// Tests the handles of "bp.native" on the test driver. The test driver ends the process if the plugin violates a rule
// of the API, for example if the plugin destroys a stream of other code.
#include <gmock/gmock.h>

#include <array>

#include "gpu_host/device.hpp"
#include "runtime/stack.hpp"

namespace backplane::cuda::test {

namespace {

using testing::HasSubstr;
using Native = gpu_host::Native<platform>;

constexpr uint64_t kBytes = 1u << 16;

// Simulates code outside the plugin, which enters the primary context itself.
class OtherCode {
 public:
  OtherCode(const Api& api, CUcontext context) : cu_(api) { EXPECT_EQ(cu_.cuCtxPushCurrent(context), CUDA_SUCCESS); }
  ~OtherCode() {
    CUcontext popped = nullptr;
    EXPECT_EQ(cu_.cuCtxPopCurrent(&popped), CUDA_SUCCESS);
  }
  OtherCode(const OtherCode&) = delete;
  OtherCode& operator=(const OtherCode&) = delete;

  CUstream create_stream() const {
    CUstream out = nullptr;
    EXPECT_EQ(cu_.cuStreamCreateWithPriority(&out, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
    return out;
  }
  // Sets the capture mode of the thread to `mode`, and returns the previous mode.
  CUstreamCaptureMode exchange(CUstreamCaptureMode mode) const {
    EXPECT_EQ(cu_.cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    return mode;
  }

 private:
  const Api& cu_;
};

class CudaNative : public testing::Test {
 protected:
  void SetUp() override {
    auto count = Native::count();
    if (!count.ok()) GTEST_SKIP() << count.status().message();
    ASSERT_GE(count.value(), std::size(devices));
    for (uint32_t i = 0; i < std::size(devices); ++i) {
      auto opened = Native::open(i, kit::Host(nullptr));
      ASSERT_TRUE(opened.ok()) << opened.status().message();
      devices[i] = std::move(opened.value());
    }
    cu = Api::load().value();
  }

  CUcontext context(int i = 0) const { return reinterpret_cast<CUcontext>(devices[i]->device_handle(1).value().value); }
  static bp_native_handle handle_of(CUstream stream) {
    return kit::native_handle("cuda.stream", reinterpret_cast<uintptr_t>(stream));
  }
  static bp_native_handle handle_of_memory(const void* address, uint64_t offset = 0, uint64_t bytes = kBytes) {
    bp_native_handle out = kit::native_handle("cuda.address", reinterpret_cast<uintptr_t>(address), BP_NATIVE_ADDRESS);
    out.offset = offset;
    out.bytes = bytes;
    return out;
  }
  simt::Buffer* allocate(uint32_t kind, int i = 0) const {
    auto made = devices[i]->allocate({sizeof(bp_buffer_desc), kind, kBytes, 256});
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.value();
  }
  void expect_refusal(const bp_native_handle& handle, bp_status code, const char* reason, int i = 0) const {
    uint32_t kind = 0;
    const kit::Status status =
        handle.bytes == 0 ? devices[i]->wrap_queue(handle).status() : devices[i]->wrap_memory(handle, kind).status();
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_THAT(status.message(), HasSubstr(reason));
  }
  void wait(const gpu_host::Mark& mark) const {
    kit::Status status;
    do {
      status = devices[0]->poll(mark);
    } while (status.code() == BP_TIMEOUT);
    EXPECT_TRUE(status.ok()) << status.message();
  }

  std::unique_ptr<Native> devices[2];
  const Api* cu = nullptr;
};

TEST_F(CudaNative, ADeviceHasItsNumberAndItsPrimaryContext) {
  const bp_native_handle number = devices[1]->device_handle(0).value();
  EXPECT_EQ(kit::type_of(number), "cuda.device");
  EXPECT_EQ(number.value, 1u);
  CUcontext primary = nullptr;
  ASSERT_EQ(cu->cuDevicePrimaryCtxRetain(&primary, 1), CUDA_SUCCESS);
  EXPECT_EQ(context(1), primary);
  EXPECT_EQ(devices[1]->device_handle(2).status().code(), BP_UNSUPPORTED);
}

// The plugin enqueues commands between commands of other code, and does not destroy the stream.
TEST_F(CudaNative, AWrappedStreamIsSharedAndNotDestroyed) {
  simt::Buffer *const device = allocate(BP_MEMORY_DEVICE), *const first = allocate(BP_MEMORY_HOST),
                      *const last = allocate(BP_MEMORY_HOST);
  std::memset(first->address, 0x5A, kBytes);
  std::memset(last->address, 0, kBytes);
  const OtherCode other(*cu, context());
  CUstream stream = other.create_stream();
  {
    auto wrapped = devices[0]->wrap_queue(handle_of(stream));
    ASSERT_TRUE(wrapped.ok()) << wrapped.status().message();
    gpu_host::Queue& queue = *wrapped.value();
    EXPECT_EQ(devices[0]->handle(queue).value().value, reinterpret_cast<uintptr_t>(stream));
    const auto address = [](const simt::Buffer* buffer) { return reinterpret_cast<CUdeviceptr>(buffer->address); };
    ASSERT_EQ(cu->cuMemcpyAsync(address(device), address(first), kBytes, stream), CUDA_SUCCESS);
    ASSERT_TRUE(devices[0]->copy(queue, last, 0, device, 0, kBytes).ok());
    const gpu_host::Mark mark = devices[0]->mark(queue, false).value();
    const bp_native_handle event = devices[0]->handle(mark).value();
    EXPECT_EQ(kit::type_of(event), "cuda.event");
    EXPECT_EQ(cu->cuStreamWaitEvent(stream, reinterpret_cast<CUevent>(event.value), CU_EVENT_WAIT_DEFAULT),
              CUDA_SUCCESS);
    wait(mark);
    EXPECT_EQ(std::memcmp(first->address, last->address, kBytes), 0);
  }
  const CUstreamCaptureMode before = other.exchange(CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(cu->cuStreamSynchronize(stream), CUDA_SUCCESS);
  other.exchange(before);
  EXPECT_EQ(cu->cuStreamDestroy(stream), CUDA_SUCCESS) << "the stream still exists";
  for (simt::Buffer* buffer : {device, first, last}) devices[0]->free(buffer);
}

TEST_F(CudaNative, StreamsThatTheDeviceCannotUseAreRefused) {
  const OtherCode other(*cu, context(1));
  CUstream stream = other.create_stream();
  expect_refusal(handle_of(stream), BP_UNSUPPORTED, "another context");
  expect_refusal(handle_of(CU_STREAM_PER_THREAD), BP_UNSUPPORTED, "another stream in each thread");
  expect_refusal(kit::native_handle("hip.stream", reinterpret_cast<uintptr_t>(stream)), BP_UNSUPPORTED, "hip.stream");
  bp_native_handle address = handle_of(stream);
  address.flags = BP_NATIVE_ADDRESS;
  expect_refusal(address, BP_UNSUPPORTED, "no address", 1);
  EXPECT_EQ(cu->cuStreamDestroy(stream), CUDA_SUCCESS);
}

// A caller may wrap the default stream, whose handle is 0. The wrapped stream keeps this handle.
TEST_F(CudaNative, TheDefaultStreamIsAStream) {
  auto wrapped = devices[0]->wrap_queue(handle_of(nullptr));
  ASSERT_TRUE(wrapped.ok()) << wrapped.status().message();
  EXPECT_EQ(devices[0]->handle(*wrapped.value()).value().value, 0u);
}

// Replaces functions of the driver, so that each stream is captured or is rejected.
TEST_F(CudaNative, AStreamThatTheDriverRejectsOrCapturesIsRefused) {
  Api api = *cu;
  const Stack stack(api);
  const gpu_host::Scope scope(stack, context());
  const auto check = [&] { return stack.check_stream(nullptr, context(), 0); };
  EXPECT_TRUE(check().ok());
  api.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus* out) {
    *out = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
  };
  EXPECT_EQ(check().code(), BP_UNSUPPORTED);
  EXPECT_THAT(check().message(), HasSubstr("end the capture first"));
  api.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus*) { return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT; };
  EXPECT_EQ(check().code(), BP_UNSUPPORTED);
  api.cuStreamGetCtx = [](CUstream, CUcontext*) { return CUDA_ERROR_INVALID_HANDLE; };
  EXPECT_EQ(check().code(), BP_INVALID_ARGUMENT);
  EXPECT_THAT(check().message(), HasSubstr("cuStreamGetCtx"));
}

TEST_F(CudaNative, MemoryOfEachKindIsWrappedAndNotFreed) {
  for (const uint32_t kind : {BP_MEMORY_DEVICE, BP_MEMORY_HOST, BP_MEMORY_SHARED}) {
    simt::Buffer* const own = allocate(kind);
    const bp_native_handle whole = devices[0]->handle(own).value();
    EXPECT_EQ(whole.flags, BP_NATIVE_ADDRESS);
    uint32_t given = UINT32_MAX;
    auto wrapped = devices[0]->wrap_memory(handle_of_memory(own->address, 4096, kBytes - 4096), given);
    ASSERT_TRUE(wrapped.ok()) << wrapped.status().message();
    EXPECT_EQ(given, kind);
    EXPECT_EQ(devices[0]->address(wrapped.value()), whole.value + 4096);
    devices[0]->free(wrapped.value());
    devices[0]->free(own);  // the test driver ends the process if the memory was freed before
  }
}

TEST_F(CudaNative, MemoryThatTheDeviceCannotUseIsRefused) {
  simt::Buffer* const own = allocate(BP_MEMORY_DEVICE);
  simt::Buffer* const other = allocate(BP_MEMORY_DEVICE, 1);
  const std::array<char, 64> ordinary{};
  expect_refusal(handle_of_memory(other->address), BP_UNSUPPORTED, "is in the memory of device 1");
  expect_refusal(handle_of_memory(own->address, 0, kBytes << 20), BP_INVALID_ARGUMENT, "as one memory");
  expect_refusal(handle_of_memory(ordinary.data(), 0, 64), BP_INVALID_ARGUMENT, "as one memory");
  expect_refusal(handle_of_memory(nullptr), BP_INVALID_ARGUMENT, "as one memory");
  bp_native_handle number = handle_of_memory(own->address);
  number.flags = 0;
  expect_refusal(number, BP_UNSUPPORTED, "BP_NATIVE_ADDRESS");
  bp_native_handle unknown = kit::native_handle("cuda.array", 64, BP_NATIVE_ADDRESS);
  unknown.bytes = 64;
  expect_refusal(unknown, BP_UNSUPPORTED, "cuda.array");
  devices[0]->free(own);
  devices[1]->free(other);
}

}  // namespace

}  // namespace backplane::cuda::test
