// SPDX-License-Identifier: Apache-2.0
// Devices and the current device of the HIP test driver.
#include <cstring>

#include "bundle.hpp"
#include "gpu_host/test_driver/memory.hpp"

namespace backplane::hip::test_driver {

namespace {

using gpu_host::test_driver::Context;
using gpu_host::test_driver::context_of;
using gpu_host::test_driver::setting;
using gpu_host::test_driver::violate;

struct ResultName {
  hipError_t code;
  const char* name;
};
constexpr ResultName kResultNames[] = {
    {hipSuccess, "hipSuccess"},
    {hipErrorInvalidValue, "hipErrorInvalidValue"},
    {hipErrorInvalidImage, "hipErrorInvalidImage"},
    {hipErrorInvalidHandle, "hipErrorInvalidHandle"},
    {hipErrorNotFound, "hipErrorNotFound"},
    {hipErrorNotReady, "hipErrorNotReady"},
    {hipErrorHostMemoryNotRegistered, "hipErrorHostMemoryNotRegistered"},
    {hipErrorStreamCaptureUnsupported, "hipErrorStreamCaptureUnsupported"},
#define BP_HIP_RESULT(name, status, remedy) {hipError##name, "hipError" #name},
#include "runtime/results.def"
#undef BP_HIP_RESULT
};

// hipcc compiles the kernels for groups of at most this size.
constexpr uint32_t kMaxGroupSize = 256;
constexpr uint32_t kSharedBytes = 64u << 10;

uint32_t lanes() { return architecture().starts_with("gfx9") ? 64 : 32; }

int first_device() {
  const std::string caller = setting("TEST_DRIVER_CALLER", "0");
  if (caller != "all") return std::stoi(caller);
  static int threads = 0;
  return ++threads % std::stoi(setting("TEST_DRIVER_DEVICES", "1"));
}

int attribute_of(hipDeviceAttribute_t attribute) {
  switch (attribute) {
    case hipDeviceAttributeComputeMode:
      return hipComputeModeDefault;
    case hipDeviceAttributeWarpSize:
      return static_cast<int>(lanes());
    case hipDeviceAttributeMaxSharedMemoryPerBlock:
      return kSharedBytes;
    case hipDeviceAttributeMultiprocessorCount:
      return static_cast<int>(gpu_host::test_driver::machine().info<cl_uint>(CL_DEVICE_MAX_COMPUTE_UNITS));
    case hipDeviceAttributeIntegrated:
      return 0;
    case hipDeviceAttributeMemoryPoolsSupported:
      return !gpu_host::test_driver::lacks("pools");
    case hipDeviceAttributeManagedMemory:
    case hipDeviceAttributeConcurrentManagedAccess:
      return !gpu_host::test_driver::lacks("managed");
    case hipDeviceAttributeCanMapHostMemory:
      return !gpu_host::test_driver::lacks("register");
    default:
      return -1;
  }
}

// Executes a function that concerns a device. `body(context)` returns the result.
template <class Body>
hipError_t run_on(const char* function, int device, const void* out, const Body& body) {
  return run(function, Needs::kStart, [&](Call&) {
    Context* const context = context_of(device);
    if (context == nullptr) return violate(Result::kInvalidDevice, "no device has this number");
    if (out == nullptr) return violate(Result::kInvalidValue, "the result has no address");
    return body(*context);
  });
}

}  // namespace

hipError_t entry_hipInit(unsigned flags) {
  return run("hipInit", Needs::kNothing, [&](Call&) {
    if (flags != 0) return violate(Result::kInvalidValue, "flags must be 0");
    int devices = 0;
    const Result result = gpu_host::test_driver::start(devices);
    return result == Result::kNoDevice ? Result::kInvalidDevice : result;
  });
}

hipError_t entry_hipDriverGetVersion(int* out) {
  return run("hipDriverGetVersion", Needs::kNothing, [&](Call&) {
    *out = std::stoi(setting("TEST_DRIVER_VERSION", std::to_string(HIP_VERSION).c_str()));
    return Result::kSuccess;
  });
}

hipError_t entry_hipGetLastError() {
  return static_cast<hipError_t>(std::exchange(Thread::current().last_failure, Result::kSuccess));
}

const char* entry_error_name(hipError_t code) {
  for (const ResultName& known : kResultNames) {
    if (known.code == code) return known.name;
  }
  return "hipErrorUnknown";
}

hipError_t entry_hipGetDeviceCount(int* out) {
  return run("hipGetDeviceCount", Needs::kStart, [&](Call&) { return gpu_host::test_driver::start(*out); });
}

hipError_t entry_hipGetDevice(int* out) {
  return run("hipGetDevice", Needs::kStart, [&](Call&) {
    *out = Thread::current().contexts.back()->ordinal;
    return Result::kSuccess;
  });
}

hipError_t entry_hipSetDevice(int device) {
  return run("hipSetDevice", Needs::kStart, [&](Call&) {
    Context* const context = context_of(device);
    if (context == nullptr) return violate(Result::kInvalidDevice, "no device has this number");
    Thread::current().contexts.back() = context;
    return Result::kSuccess;
  });
}

hipError_t entry_hipDeviceGetName(char* out, int bytes, hipDevice_t device) {
  return run_on("hipDeviceGetName", device, out, [&](Context&) {
    std::strncpy(out, "Backplane test device", static_cast<std::size_t>(bytes));
    return Result::kSuccess;
  });
}

hipError_t entry_hipDeviceGetUuid(hipUUID* out, hipDevice_t device) {
  return run_on("hipDeviceGetUuid", device, out, [&](Context&) {
    std::memcpy(out->bytes, "test driver    ", sizeof(out->bytes));
    out->bytes[15] = static_cast<char>(device);
    return Result::kSuccess;
  });
}

hipError_t entry_hipDeviceTotalMem(std::size_t* out, hipDevice_t device) {
  return run_on("hipDeviceTotalMem", device, out, [&](Context&) {
    *out = gpu_host::test_driver::total_bytes();
    return Result::kSuccess;
  });
}

hipError_t entry_hipDeviceGetAttribute(int* out, hipDeviceAttribute_t attribute, int device) {
  return run_on("hipDeviceGetAttribute", device, out, [&](Context&) {
    *out = attribute_of(attribute);
    return *out < 0 ? violate(Result::kInvalidValue, "the test driver does not know this attribute") : Result::kSuccess;
  });
}

hipError_t entry_get_properties(Properties* out, int device) {
  return run_on("hipGetDeviceProperties", device, out, [&](Context&) {
    *out = {};
    const bool has_features = lanes() == 64 && architecture().find(':') == std::string::npos;
    const std::string name = architecture() + (has_features ? ":sramecc+:xnack-" : "");
    std::strncpy(out->gcnArchName, name.c_str(), sizeof(out->gcnArchName) - 1);
    return Result::kSuccess;
  });
}

hipError_t entry_hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode) {
  return run("hipThreadExchangeStreamCaptureMode", Needs::kStart, [&](Call&) {
    if (*mode < hipStreamCaptureModeGlobal || *mode > hipStreamCaptureModeRelaxed) {
      return violate(Result::kInvalidValue, "the capture mode does not exist");
    }
    *mode = static_cast<hipStreamCaptureMode>(std::exchange(Thread::current().capture_mode, *mode));
    return Result::kSuccess;
  });
}

}  // namespace backplane::hip::test_driver

namespace backplane::gpu_host::test_driver {

const Traits& traits() {
  using namespace hip::test_driver;
  // A launch has fewer than 2^32 threads in each dimension.
  static const Traits one{
      ".hsaco",     [](const void* image) { return read_bundle(image).bytes; },
      lanes(),      {kMaxGroupSize, {1024, 1024, 1024}, {0x7FFFFFFF, 65536, 65536}, 0xFFFFFFFF, kSharedBytes},
      first_device, true,
      false};
  return one;
}

}  // namespace backplane::gpu_host::test_driver
