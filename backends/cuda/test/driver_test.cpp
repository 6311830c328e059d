// SPDX-License-Identifier: Apache-2.0
// Tests the CUDA test driver: memory, streams, events, a kernel, and the rules that the driver enforces.
#include <cuda.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "params.hpp"

namespace backplane::cuda::test {

namespace {

namespace fs = std::filesystem;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

struct Functions {
#define BP_CU(name, symbol) decltype(&::name) name = nullptr;
#include "runtime/functions.def"
#undef BP_CU

  static const Functions& get() {
    static const Functions one = [] {
      Functions out;
      void* const library = ::dlopen(std::getenv("BACKPLANE_CUDA_DRIVER"), RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) return out;
#define BP_CU(name, symbol) out.name = reinterpret_cast<decltype(out.name)>(::dlsym(library, #symbol));
#include "runtime/functions.def"
#undef BP_CU
      return out;
    }();
    return one;
  }
};

constexpr uint32_t kCount = 10000;  // elements
constexpr std::size_t kBytes = kCount * sizeof(uint32_t);

class CudaTestDriver : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(cu.cuInit, nullptr) << "BACKPLANE_CUDA_DRIVER names no library";
    if (cu.cuInit(0) == CUDA_ERROR_NO_DEVICE) GTEST_SKIP() << "there is no OpenCL runtime for CPUs";
    std::string pattern = testing::TempDir() + "backplane_cuda_XXXXXX";
    folder = ::mkdtemp(pattern.data());
    ::setenv("TEST_DRIVER_VIOLATIONS", (folder / "violations").c_str(), 1);
    ASSERT_EQ(cu.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cu.cuCtxPushCurrent(context), CUDA_SUCCESS);
    ASSERT_EQ(cu.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
    ASSERT_EQ(cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  }
  void TearDown() override {
    if (context == nullptr) return;
    EXPECT_EQ(cu.cuEventDestroy(event), CUDA_SUCCESS);
    EXPECT_EQ(cu.cuStreamDestroy(stream), CUDA_SUCCESS);
    CUcontext popped = nullptr;
    EXPECT_EQ(cu.cuCtxPopCurrent(&popped), CUDA_SUCCESS);
    EXPECT_EQ(popped, context);
    fs::remove_all(folder);
  }

  // Returns the violations since the previous call.
  std::string violations() const {
    std::ifstream file(folder / "violations");
    std::string out{std::istreambuf_iterator<char>(file), {}};
    fs::remove(folder / "violations");
    return out;
  }
  CUdeviceptr device_memory() const {
    CUdeviceptr out = 0;
    EXPECT_EQ(cu.cuMemAlloc(&out, kBytes), CUDA_SUCCESS);
    return out;
  }
  static CUdeviceptr address_of(std::vector<uint32_t>& values) { return reinterpret_cast<CUdeviceptr>(values.data()); }
  void copy(CUdeviceptr to, CUdeviceptr from) const {
    EXPECT_EQ(cu.cuMemcpyAsync(to, from, kBytes, stream), CUDA_SUCCESS);
  }
  std::vector<uint32_t> read(CUdeviceptr address) const {
    std::vector<uint32_t> out(kCount);
    copy(address_of(out), address);
    EXPECT_EQ(cu.cuStreamSynchronize(stream), CUDA_SUCCESS);
    return out;
  }
  CUfunction kernel() const {
    std::ifstream file(fs::path(std::getenv("TEST_DRIVER_MODULES")) / "copy_iota_u32.fatbin", std::ios::binary);
    const std::string image{std::istreambuf_iterator<char>(file), {}};
    CUmodule module = nullptr;
    CUfunction out = nullptr;
    EXPECT_EQ(cu.cuModuleLoadData(&module, image.data()), CUDA_SUCCESS);
    EXPECT_EQ(cu.cuModuleGetFunction(&out, module, "iota"), CUDA_SUCCESS);
    return out;
  }
  // Writes 5, 8, 11, ... to `out`.
  CUresult launch(CUfunction function, CUdeviceptr out, unsigned group_size = 64, CUstream on = nullptr) const {
    struct {
      CUdeviceptr pointers[4];
      simt::NestParams params;
    } arguments{{out, 0, 0, 0}, {}};
    simt::NestParams& params = arguments.params;
    params.immediates[1] = 5;
    params.immediates[2] = 3;
    params.immediate = 6;
    params.strides[0][0] = params.strides[3][0] = 1;
    params.shape[0] = params.count = kCount;
    params.rank = 1;
    std::size_t bytes = sizeof(arguments);
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &arguments, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    return cu.cuLaunchKernel(function, 4, 1, 1, group_size, 1, 1, 0, on == nullptr ? stream : on, nullptr, extra);
  }
  // Waits for an event as a host does.
  void wait_for(CUevent recorded) const {
    while (cu.cuEventQuery(recorded) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
    EXPECT_EQ(cu.cuEventQuery(recorded), CUDA_SUCCESS);
  }

  const Functions& cu = Functions::get();
  fs::path folder;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
};

TEST_F(CudaTestDriver, HasEachFunctionOfThePlugin) {
#define BP_CU(name, symbol) EXPECT_NE(cu.name, nullptr) << #symbol;
#include "runtime/functions.def"
#undef BP_CU
}

TEST_F(CudaTestDriver, RunsAKernelBetweenCopies) {
  const CUdeviceptr memory = device_memory();
  std::vector<uint32_t> values(kCount, 7);
  copy(memory, address_of(values));
  EXPECT_THAT(read(memory), Each(7));
  const CUfunction function = kernel();
  ASSERT_EQ(launch(function, memory), CUDA_SUCCESS);
  values = read(memory);
  for (uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(values[i], 5 + 3 * i);
  EXPECT_EQ(cu.cuMemFree(memory), CUDA_SUCCESS);
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(CudaTestDriver, RunsAKernelOnRegisteredHostMemory) {
  std::vector<uint32_t> values(kCount);
  ASSERT_EQ(cu.cuMemHostRegister(values.data(), kBytes, CU_MEMHOSTREGISTER_DEVICEMAP), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuMemHostRegister(values.data() + 8, 8, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  ASSERT_EQ(launch(kernel(), address_of(values)), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuMemHostUnregister(values.data()), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(violations(), HasSubstr("may not have ended"));
  EXPECT_EQ(cu.cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(values.back(), 5 + 3 * (kCount - 1));
  EXPECT_EQ(cu.cuMemHostUnregister(values.data()), CUDA_SUCCESS);
}

TEST_F(CudaTestDriver, AnEventWithoutRecordIsComplete) {
  EXPECT_EQ(cu.cuEventQuery(event), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuStreamWaitEvent(stream, event, 0), CUDA_SUCCESS);
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(CudaTestDriver, EventsMeasureTime) {
  CUevent begin = nullptr, end = nullptr;
  ASSERT_EQ(cu.cuEventCreate(&begin, CU_EVENT_DEFAULT), CUDA_SUCCESS);
  ASSERT_EQ(cu.cuEventCreate(&end, CU_EVENT_DEFAULT), CUDA_SUCCESS);
  const CUdeviceptr memory = device_memory();
  const CUfunction function = kernel();
  EXPECT_EQ(cu.cuEventRecord(begin, stream), CUDA_SUCCESS);
  EXPECT_EQ(launch(function, memory), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuEventRecord(end, stream), CUDA_SUCCESS);
  wait_for(end);
  float milliseconds = -1;
  EXPECT_EQ(cu.cuEventElapsedTime(&milliseconds, begin, end), CUDA_SUCCESS);
  EXPECT_GT(milliseconds, 0);
  EXPECT_LT(milliseconds, 10000);
  EXPECT_EQ(cu.cuEventElapsedTime(&milliseconds, begin, event), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_THAT(violations(), HasSubstr("no time"));
  for (CUevent each : {begin, end}) EXPECT_EQ(cu.cuEventDestroy(each), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuMemFree(memory), CUDA_SUCCESS);
}

TEST_F(CudaTestDriver, MemoryIsFreedAfterItsUse) {
  CUdeviceptr memory = device_memory();
  EXPECT_EQ(launch(kernel(), memory), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(violations(), HasSubstr("may not have ended"));
  EXPECT_EQ(cu.cuEventRecord(event, stream), CUDA_SUCCESS);
  wait_for(event);
  EXPECT_EQ(cu.cuMemFree(memory), CUDA_SUCCESS);
  EXPECT_THAT(violations(), IsEmpty());
  EXPECT_EQ(cu.cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(violations(), HasSubstr("not that of an allocation"));
}

TEST_F(CudaTestDriver, StreamsOrderTheirAllocations) {
  CUstream other = nullptr;
  ASSERT_EQ(cu.cuStreamCreateWithPriority(&other, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
  CUdeviceptr memory = 0;
  ASSERT_EQ(cu.cuMemAllocAsync(&memory, kBytes, other), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuMemcpyAsync(memory, memory + kBytes / 2, 4, stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(violations(), HasSubstr("before the stream that allocates it"));
  EXPECT_EQ(cu.cuEventRecord(event, other), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuStreamWaitEvent(stream, event, 0), CUDA_SUCCESS);
  EXPECT_EQ(launch(kernel(), memory), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuMemFreeAsync(memory, other), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(violations(), HasSubstr("does not wait"));
  EXPECT_EQ(cu.cuEventRecord(event, stream), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuStreamWaitEvent(other, event, 0), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuMemFreeAsync(memory, other), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuStreamDestroy(other), CUDA_SUCCESS);
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(CudaTestDriver, CopiesStayWithinAllocations) {
  const CUdeviceptr memory = device_memory();
  std::vector<uint32_t> values(kCount);
  EXPECT_EQ(cu.cuMemcpyAsync(memory + 4, address_of(values), kBytes, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(violations(), HasSubstr("exceeds an allocation"));
  EXPECT_EQ(cu.cuMemcpyAsync(memory, 4096, kBytes, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(violations(), HasSubstr("does not exist"));
  EXPECT_EQ(cu.cuMemFree(memory), CUDA_SUCCESS);
}

TEST_F(CudaTestDriver, RejectsTheDefaultStream) {
  EXPECT_EQ(cu.cuEventRecord(event, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_THAT(violations(), HasSubstr("the default stream"));
}

TEST_F(CudaTestDriver, RejectsDestroyedObjects) {
  CUstream destroyed = nullptr;
  ASSERT_EQ(cu.cuStreamCreateWithPriority(&destroyed, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
  ASSERT_EQ(cu.cuStreamDestroy(destroyed), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuStreamSynchronize(destroyed), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_THAT(violations(), HasSubstr("a stream is used that was destroyed"));
  CUevent gone = nullptr;
  ASSERT_EQ(cu.cuEventCreate(&gone, 0), CUDA_SUCCESS);
  ASSERT_EQ(cu.cuEventDestroy(gone), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuEventQuery(gone), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_THAT(violations(), HasSubstr("an event is used that was destroyed"));
}

TEST_F(CudaTestDriver, RejectsObjectsOfAnotherContext) {
  CUcontext other = nullptr;
  ASSERT_EQ(cu.cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
  const CUfunction function = kernel();
  const CUdeviceptr memory = device_memory();
  ASSERT_EQ(cu.cuCtxPushCurrent(other), CUDA_SUCCESS);
  EXPECT_EQ(launch(function, memory), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_THAT(violations(), HasSubstr("another context"));
  CUevent foreign = nullptr;
  ASSERT_EQ(cu.cuEventCreate(&foreign, 0), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuEventRecord(foreign, stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_THAT(violations(), HasSubstr("different contexts"));
  EXPECT_EQ(cu.cuEventDestroy(foreign), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuCtxPopCurrent(&other), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuMemFree(memory), CUDA_SUCCESS);
}

TEST_F(CudaTestDriver, ChecksLaunches) {
  const CUfunction function = kernel();
  EXPECT_EQ(launch(function, 0, 2048), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(violations(), HasSubstr("size of groups"));
  std::size_t bytes = 24;
  uint64_t arguments[3] = {};
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, arguments, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  EXPECT_EQ(cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, extra), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(violations(), HasSubstr("shorter"));
  EXPECT_EQ(cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 49153, stream, nullptr, extra), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(violations(), HasSubstr("shared memory"));
}

TEST_F(CudaTestDriver, NeedsACurrentContext) {
  std::thread([&] {
    CUdeviceptr memory = 0;
    EXPECT_EQ(cu.cuMemAlloc(&memory, 4), CUDA_ERROR_INVALID_CONTEXT);
  }).join();
  EXPECT_THAT(violations(), HasSubstr("cuMemAlloc: the thread has no current context"));
}

TEST_F(CudaTestDriver, ReportsAThreadThatDoesNotPop) {
  std::thread([&] { EXPECT_EQ(cu.cuCtxPushCurrent(context), CUDA_SUCCESS); }).join();
  EXPECT_THAT(violations(), HasSubstr("did not pop a context"));
}

TEST_F(CudaTestDriver, ReportsUnsafeCallsDuringACapture) {
  ::setenv("TEST_DRIVER_CAPTURE", "1", 1);
  CUdeviceptr memory = 0;
  EXPECT_EQ(cu.cuMemAlloc(&memory, kBytes), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_THAT(violations(), HasSubstr("captures a stream"));
  auto mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  EXPECT_EQ(cu.cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT_EQ(cu.cuMemAlloc(&memory, kBytes), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuMemFree(memory), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
  ::unsetenv("TEST_DRIVER_CAPTURE");
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(CudaTestDriver, AChildProcessIsRefused) {
  const pid_t child = ::fork();
  if (child == 0) {
    CUdeviceptr memory = 0;
    ::_exit(cu.cuMemAlloc(&memory, kBytes) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// The context of device 2 remains unusable, as after a failed kernel.
TEST_F(CudaTestDriver, AnIllegalAddressEndsTheContext) {
  CUcontext lost = nullptr;
  const CUdeviceptr memory = device_memory();
  ASSERT_EQ(cu.cuDevicePrimaryCtxRetain(&lost, 2), CUDA_SUCCESS);
  ASSERT_EQ(cu.cuCtxPushCurrent(lost), CUDA_SUCCESS);
  CUstream on = nullptr;
  ASSERT_EQ(cu.cuStreamCreateWithPriority(&on, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
  const CUfunction function = kernel();
  EXPECT_EQ(launch(function, memory, 64, on), CUDA_SUCCESS);
  EXPECT_THAT(violations(), HasSubstr("address of another device"));
  EXPECT_EQ(cu.cuStreamSynchronize(on), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cu.cuStreamDestroy(on), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cu.cuCtxPopCurrent(&lost), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuMemFree(memory), CUDA_SUCCESS);
  EXPECT_THAT(violations(), IsEmpty());
}

}  // namespace

}  // namespace backplane::cuda::test
