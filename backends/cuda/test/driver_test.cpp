// SPDX-License-Identifier: Apache-2.0
// Tests the rules of the CUDA test driver that concern only CUDA: contexts, captures and flags.
#include "gpu_host/test/driver_test.hpp"

#include <thread>

#include "runtime/stack.hpp"
#include "runtime/units.hpp"

namespace backplane::gpu_host::test {

Platform& platform() { return cuda::platform(); }

using testing::HasSubstr;

class CudaDriver : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    if (!IsSkipped()) cu = cuda::Api::load().value();
  }
  const cuda::Api* cu = nullptr;
};

TEST_F(CudaDriver, NeedsACurrentContext) {
  std::thread([&] {
    CUdeviceptr memory = 0;
    EXPECT_EQ(cu->cuMemAlloc(&memory, 4), CUDA_ERROR_INVALID_CONTEXT);
  }).join();
  EXPECT_THAT(violations(), HasSubstr("cuMemAlloc: the thread has no current context"));
}

TEST_F(CudaDriver, ReportsAThreadThatDoesNotPop) {
  std::thread([&] {
    EXPECT_EQ(cu->cuCtxPushCurrent(static_cast<CUcontext>(context().handle())), CUDA_SUCCESS);
  }).join();
  EXPECT_THAT(violations(), HasSubstr("did not restore its context"));
}

TEST_F(CudaDriver, ReportsUnsafeCallsDuringACapture) {
  ::setenv("TEST_DRIVER_CAPTURE", "1", 1);
  auto mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  EXPECT_EQ(cu->cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
  CUdeviceptr memory = 0;
  EXPECT_EQ(cu->cuMemAlloc(&memory, kBytes), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_THAT(violations(), HasSubstr("captures a stream"));
  EXPECT_EQ(cu->cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  EXPECT_EQ(cu->cuMemAlloc(&memory, kBytes), CUDA_SUCCESS);
  EXPECT_EQ(cu->cuMemFree(memory), CUDA_SUCCESS);
  ::unsetenv("TEST_DRIVER_CAPTURE");
}

TEST_F(CudaDriver, ChecksTheSharedMemoryThatALaunchAdds) {
  const gpu_host::UnitTile& tile = cuda::tensor_kernels().tiles.back();
  const std::string name = kit::text("unit_", tile.rows, "x", tile.columns, "_kk");
  const std::span<const std::byte> image = stack().image_of("unit_product_f16");
  if (image.empty()) GTEST_SKIP() << "no architecture of the build has tensor cores";
  const Handle module = stack().load_module(image).value();
  EXPECT_FALSE(stack().find_kernel(module, name, 1u << 20).ok());
  EXPECT_THAT(violations(), HasSubstr("a launch cannot add so much shared memory"));
  const Handle kernel = stack().find_kernel(module, name, tile.local_bytes).value();
  const std::vector<std::byte> arguments(4096);
  const auto launch = [&](uint32_t local_bytes) {
    return stack().launch(kernel, {1, 1, 1}, tile.group_size, local_bytes, arguments, {}, stream);
  };
  expect_violation(launch(tile.local_bytes - 16), test_driver::Result::kInvalidValue, "less shared memory");
  expect_violation(launch(tile.local_bytes + 16), test_driver::Result::kInvalidValue, "more shared memory");
  expect_violation(launch(0), test_driver::Result::kInvalidValue, "too much shared memory");
}

TEST_F(CudaDriver, ChecksTensorMaps) {
  CUtensorMap map;
  std::vector<std::byte> memory(512);
  const auto encode = [&](std::ptrdiff_t offset, cuuint64_t pitch, cuuint32_t lines, cuuint32_t step) {
    auto* const base = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
    const cuuint64_t extents[] = {64, 2, 1}, pitches[] = {pitch, 256};
    const cuuint32_t box[] = {64, lines, 1}, steps[] = {1, step, 1};
    return cu->cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, base + offset, extents, pitches, box,
                                      steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                      CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  EXPECT_EQ(encode(0, 128, 2, 1), CUDA_SUCCESS);
  EXPECT_EQ(encode(2, 128, 2, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(violations(), HasSubstr("the address of a tensor map is not a multiple of 16"));
  EXPECT_EQ(encode(0, 136, 2, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(violations(), HasSubstr("a stride of a tensor map is not a multiple of 16"));
  EXPECT_EQ(encode(0, 128, 257, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(violations(), HasSubstr("an extent of a box is not 1 to 256"));
  EXPECT_EQ(encode(0, 128, 2, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(violations(), HasSubstr("adjacent elements"));
}

TEST_F(CudaDriver, ADriverWithoutTensorMapsIsUsable) {
  cuda::Api old = *cu;
  old.cuTensorMapEncodeTiled = nullptr;
  old.has_tensor_maps = false;
  ::setenv(cuda::kTensorKernels, "on", 1);
  PhysicalDevice with, without;
  EXPECT_TRUE(cuda::Stack(*cu).describe(0, with).ok());
  EXPECT_TRUE(cuda::Stack(old).describe(0, without).ok());
  ::setenv(cuda::kTensorKernels, "off", 1);
  EXPECT_EQ(without.limits.matrix_instructions, with.limits.matrix_instructions & ~cuda::kTensorMaps);
  EXPECT_EQ(without.refusal, "");
}

TEST_F(CudaDriver, RejectsDestroyedEvents) {
  CUevent gone = nullptr;
  ASSERT_EQ(cu->cuEventCreate(&gone, 0), CUDA_SUCCESS);
  ASSERT_EQ(cu->cuEventDestroy(gone), CUDA_SUCCESS);
  EXPECT_EQ(cu->cuEventQuery(gone), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cu->cuEventSynchronize(gone), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_THAT(violations(), HasSubstr("an event is used that was destroyed"));
}

TEST_F(CudaDriver, RejectsStreamsThatWaitForTheDefaultStream) {
  CUstream made = nullptr;
  EXPECT_EQ(cu->cuStreamCreateWithPriority(&made, CU_STREAM_DEFAULT, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(violations(), HasSubstr("the default stream"));
}

TEST_F(CudaDriver, LimitsSharedMemory) {
  std::byte arguments[4096] = {};
  std::size_t bytes = sizeof(arguments);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, arguments, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  const auto function = static_cast<CUfunction>(kernel());
  EXPECT_EQ(cu->cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 49153, static_cast<CUstream>(stream), nullptr, extra),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(violations(), HasSubstr("shared memory"));
}

}  // namespace backplane::gpu_host::test
