// SPDX-License-Identifier: Apache-2.0
// Streams, events, modules and launches of the HIP test driver.
#include "bundle.hpp"
#include "gpu_host/test_driver/modules.hpp"

namespace backplane::hip::test_driver {

using gpu_host::test_driver::violate;

hipError_t entry_hipStreamCreateWithPriority(hipStream_t* out, unsigned flags, int) {
  return run("hipStreamCreateWithPriority", Needs::kContext, [&](Call& call) {
    if (flags != hipStreamNonBlocking) {
      return violate(Result::kInvalidValue, "the stream would wait for the default stream");
    }
    *out = static_cast<hipStream_t>(gpu_host::test_driver::add_stream(call.context()));
    return Result::kSuccess;
  });
}

hipError_t entry_hipStreamDestroy(hipStream_t stream) {
  return run("hipStreamDestroy", Needs::kContext,
             [&](Call& call) { return gpu_host::test_driver::remove_stream(call, stream); });
}

hipError_t entry_hipStreamSynchronize(hipStream_t stream) {
  return run("hipStreamSynchronize", Needs::kUncapturedContext,
             [&](Call& call) { return gpu_host::test_driver::synchronize(call, stream); });
}

hipError_t entry_hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags) {
  return run("hipStreamWaitEvent", Needs::kContext, [&](Call& call) {
    if (flags != 0) return violate(Result::kInvalidValue, "flags must be 0");
    return gpu_host::test_driver::wait_event(call, stream, event);
  });
}

hipError_t entry_hipEventCreateWithFlags(hipEvent_t* out, unsigned flags) {
  return run("hipEventCreateWithFlags", Needs::kContext, [&](Call& call) {
    if ((flags & ~unsigned{hipEventBlockingSync | hipEventDisableTiming}) != 0) {
      return violate(Result::kInvalidValue, "the driver does not know the flags");
    }
    const bool is_timed = (flags & hipEventDisableTiming) == 0;
    *out = static_cast<hipEvent_t>(gpu_host::test_driver::add_event(call.context(), is_timed));
    return Result::kSuccess;
  });
}

hipError_t entry_hipEventDestroy(hipEvent_t event) {
  return run("hipEventDestroy", Needs::kContext, [&](Call&) { return gpu_host::test_driver::remove_event(event); });
}

hipError_t entry_hipEventRecord(hipEvent_t event, hipStream_t stream) {
  return run("hipEventRecord", Needs::kContext,
             [&](Call& call) { return gpu_host::test_driver::record(call, event, stream); });
}

hipError_t entry_hipEventQuery(hipEvent_t event) {
  return run("hipEventQuery", Needs::kUncapturedContext, [&](Call&) { return gpu_host::test_driver::query(event); });
}

hipError_t entry_hipEventSynchronize(hipEvent_t event) {
  return run("hipEventSynchronize", Needs::kUncapturedContext,
             [&](Call& call) { return gpu_host::test_driver::await_event(call, event); });
}

hipError_t entry_hipEventElapsedTime(float* out, hipEvent_t begin, hipEvent_t end) {
  return run("hipEventElapsedTime", Needs::kContext,
             [&](Call&) { return gpu_host::test_driver::elapsed(begin, end, *out); });
}

hipError_t entry_hipModuleLoadData(hipModule_t* out, const void* image) {
  return run("hipModuleLoadData", Needs::kUncapturedContext, [&](Call& call) {
    const Bundle bundle = image == nullptr ? Bundle{} : read_bundle(image);
    if (!bundle.bytes.empty() && !bundle.has_code) return Result::kNoBinaryForGpu;
    return gpu_host::test_driver::load_module(call.context(), image, reinterpret_cast<void**>(out));
  });
}

hipError_t entry_hipModuleGetFunction(hipFunction_t* out, hipModule_t module, const char* name) {
  return run("hipModuleGetFunction", Needs::kContext, [&](Call& call) {
    return gpu_host::test_driver::find_kernel(call, module, name, reinterpret_cast<void**>(out));
  });
}

hipError_t entry_hipModuleLaunchKernel(hipFunction_t kernel, unsigned groups_x, unsigned groups_y, unsigned groups_z,
                                       unsigned size_x, unsigned size_y, unsigned size_z, unsigned shared_bytes,
                                       hipStream_t stream, void** params, void** extra) {
  return run("hipModuleLaunchKernel", Needs::kContext, [&](Call& call) {
    const std::span<const std::byte> arguments = arguments_of(params, extra);
    if (arguments.empty()) return violate(Result::kInvalidValue, "the test driver takes the arguments in one buffer");
    return gpu_host::test_driver::launch(
        call, kernel, stream, {{groups_x, groups_y, groups_z}, {size_x, size_y, size_z}, shared_bytes}, arguments);
  });
}

}  // namespace backplane::hip::test_driver
