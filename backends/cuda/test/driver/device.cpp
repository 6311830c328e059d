// SPDX-License-Identifier: Apache-2.0
// Devices and contexts of the CUDA test driver.
#include <cstring>

#include "call.hpp"
#include "gpu_host/test_driver/memory.hpp"
#include "own_modules.hpp"

namespace backplane::cuda::test_driver {

namespace {

using gpu_host::test_driver::Context;
using gpu_host::test_driver::context_of;
using gpu_host::test_driver::setting;
using gpu_host::test_driver::Thread;
using gpu_host::test_driver::violate;

struct ResultName {
  CUresult code;
  const char* name;
};
constexpr ResultName kResultNames[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY"},
    {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
#define BP_CU_RESULT(name, status, remedy) {CUDA_ERROR_##name, "CUDA_ERROR_" #name},
#include "runtime/results.def"
#undef BP_CU_RESULT
};

constexpr uint32_t kLanes = 32, kMaxGroupSize = 1024, kSharedBytes = 48u << 10;

int architecture() { return std::stoi(setting("TEST_DRIVER_ARCHITECTURE", "80")); }
// The maximum shared memory of a launch, in bytes, as on an A100 and on an H100.
uint32_t launch_bytes() { return architecture() < 90 ? 163u << 10 : 227u << 10; }

int attribute_of(CUdevice_attribute attribute) {
  const bool is_managed = !gpu_host::test_driver::lacks("managed");
  const bool is_registering = !gpu_host::test_driver::lacks("register");
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return architecture() / 10;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return architecture() % 10;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
      return CU_COMPUTEMODE_DEFAULT;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
      return 1;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      return kLanes;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return kMaxGroupSize;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return kSharedBytes;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return static_cast<int>(launch_bytes());
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return static_cast<int>(gpu_host::test_driver::machine().info<cl_uint>(CL_DEVICE_MAX_COMPUTE_UNITS));
    case CU_DEVICE_ATTRIBUTE_INTEGRATED:
      return 0;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
      return !gpu_host::test_driver::lacks("pools");
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
      return is_managed;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED:
      return !gpu_host::test_driver::lacks("external");
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
      return is_registering;
    default:
      return -1;
  }
}

// Returns the bytes of a fatbin, or nothing if the image is not a fatbin.
std::span<const std::byte> bytes_of(const void* image) {
  struct Header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t payload_bytes;
  } header;
  std::memcpy(&header, image, sizeof(header));
  if (header.magic != 0xBA55ED50) return {};
  return {static_cast<const std::byte*>(image), header.header_bytes + header.payload_bytes};
}

// Executes a function that has a device as parameter. `body(context)` returns the result.
template <class Body>
CUresult run_on(const char* function, CUdevice device, const void* out, const Body& body) {
  return run(function, Needs::kStart, [&](Call&) {
    Context* const context = context_of(device);
    if (context == nullptr) return violate(Result::kInvalidDevice, "no device has this number");
    if (out == nullptr) return violate(Result::kInvalidValue, "the result has no address");
    return body(*context);
  });
}

}  // namespace

CUresult CUDAAPI entry_cuInit(unsigned flags) {
  return run("cuInit", Needs::kNothing, [&](Call&) {
    if (flags != 0) return violate(Result::kInvalidValue, "flags must be 0");
    int devices = 0;
    return gpu_host::test_driver::start(devices);
  });
}

CUresult CUDAAPI entry_cuDriverGetVersion(int* out) {
  return run("cuDriverGetVersion", Needs::kNothing, [&](Call&) {
    *out = std::stoi(setting("TEST_DRIVER_VERSION", std::to_string(CUDA_VERSION).c_str()));
    return Result::kSuccess;
  });
}

CUresult CUDAAPI entry_cuGetErrorName(CUresult code, const char** out) {
  *out = nullptr;
  for (const ResultName& known : kResultNames) {
    if (known.code == code) *out = known.name;
  }
  return *out == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult CUDAAPI entry_cuDeviceGetCount(int* out) {
  return run("cuDeviceGetCount", Needs::kStart, [&](Call&) { return gpu_host::test_driver::start(*out); });
}

CUresult CUDAAPI entry_cuDeviceGet(CUdevice* out, int ordinal) {
  return run_on("cuDeviceGet", ordinal, out, [&](Context&) {
    *out = ordinal;
    return Result::kSuccess;
  });
}

CUresult CUDAAPI entry_cuDeviceGetName(char* out, int bytes, CUdevice device) {
  return run_on("cuDeviceGetName", device, out, [&](Context&) {
    std::strncpy(out, "Backplane test device", static_cast<std::size_t>(bytes));
    return Result::kSuccess;
  });
}

CUresult CUDAAPI entry_cuDeviceGetUuid(CUuuid* out, CUdevice device) {
  return run_on("cuDeviceGetUuid", device, out, [&](Context&) {
    std::memcpy(out->bytes, "test driver    ", sizeof(out->bytes));
    out->bytes[15] = static_cast<char>(device);
    return Result::kSuccess;
  });
}

CUresult CUDAAPI entry_cuDeviceTotalMem(std::size_t* out, CUdevice device) {
  return run_on("cuDeviceTotalMem", device, out, [&](Context&) {
    *out = gpu_host::test_driver::total_bytes();
    return Result::kSuccess;
  });
}

CUresult CUDAAPI entry_cuDeviceGetAttribute(int* out, CUdevice_attribute attribute, CUdevice device) {
  return run_on("cuDeviceGetAttribute", device, out, [&](Context&) {
    *out = attribute_of(attribute);
    return *out < 0 ? violate(Result::kInvalidValue, "the test driver does not know this attribute") : Result::kSuccess;
  });
}

CUresult CUDAAPI entry_cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
  return run_on("cuDevicePrimaryCtxRetain", device, out, [&](Context& context) {
    ++context.retained;
    *out = reinterpret_cast<CUcontext>(&context);
    return Result::kSuccess;
  });
}

CUresult CUDAAPI entry_cuCtxGetCurrent(CUcontext* out) {
  return run("cuCtxGetCurrent", Needs::kStart, [&](Call&) {
    const auto& contexts = Thread::current().contexts;
    *out = contexts.empty() ? nullptr : reinterpret_cast<CUcontext>(contexts.back());
    return Result::kSuccess;
  });
}

CUresult CUDAAPI entry_cuCtxPushCurrent(CUcontext handle) {
  return run("cuCtxPushCurrent", Needs::kStart, [&](Call&) {
    auto* const context = reinterpret_cast<Context*>(handle);
    for (int i = 0; context_of(i) != nullptr; ++i) {
      if (context_of(i) != context || context->retained == 0) continue;
      Thread::current().contexts.push_back(context);
      return Result::kSuccess;
    }
    return violate(Result::kInvalidContext, "the context does not exist");
  });
}

CUresult CUDAAPI entry_cuCtxPopCurrent(CUcontext* out) {
  return run("cuCtxPopCurrent", Needs::kStart, [&](Call&) {
    auto& contexts = Thread::current().contexts;
    if (contexts.empty()) return violate(Result::kInvalidContext, "the thread has no current context");
    if (out != nullptr) *out = reinterpret_cast<CUcontext>(contexts.back());
    contexts.pop_back();
    return Result::kSuccess;
  });
}

CUresult CUDAAPI entry_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return run("cuThreadExchangeStreamCaptureMode", Needs::kStart, [&](Call&) {
    const int previous = Thread::current().capture_mode;
    if (*mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
      return violate(Result::kInvalidValue, "the capture mode does not exist");
    }
    Thread::current().capture_mode = *mode;
    *mode = static_cast<CUstreamCaptureMode>(previous);
    return Result::kSuccess;
  });
}

}  // namespace backplane::cuda::test_driver

namespace backplane::gpu_host::test_driver {

const Traits& traits() {
  using namespace cuda::test_driver;
  static const Traits kTraits{
      ".fatbin",
      bytes_of,
      kLanes,
      {kMaxGroupSize, {1024, 1024, 64}, {0x7FFFFFFF, 65535, 65535}, uint64_t{0x7FFFFFFF} * 1024, kSharedBytes},
      nullptr,
      false,
      true,
      launch_bytes(),
      find_own_module};
  return kTraits;
}

}  // namespace backplane::gpu_host::test_driver
