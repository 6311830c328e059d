// SPDX-License-Identifier: Apache-2.0
// Streams, events, modules and launches of the CUDA test driver.
#include "call.hpp"
#include "gpu_host/test_driver/modules.hpp"

namespace backplane::cuda::test_driver {

using gpu_host::test_driver::violate;

CUresult CUDAAPI entry_cuStreamCreateWithPriority(CUstream* out, unsigned flags, int) {
  return run("cuStreamCreateWithPriority", Needs::kContext, [&](Call& call) {
    if (flags != CU_STREAM_NON_BLOCKING) {
      return violate(Result::kInvalidValue, "the stream would wait for the default stream");
    }
    *out = static_cast<CUstream>(gpu_host::test_driver::add_stream(call.context()));
    return Result::kSuccess;
  });
}

CUresult CUDAAPI entry_cuStreamDestroy(CUstream stream) {
  return run("cuStreamDestroy", Needs::kContext,
             [&](Call& call) { return gpu_host::test_driver::remove_stream(call, stream); });
}

CUresult CUDAAPI entry_cuStreamGetCtx(CUstream stream, CUcontext* out) {
  return run("cuStreamGetCtx", Needs::kContext, [&](Call& call) {
    // The default stream belongs to the current context.
    const auto found = stream == nullptr ? nullptr : gpu_host::test_driver::find_stream(stream);
    if (stream != nullptr && found == nullptr) return Result::kInvalidHandle;
    *out = reinterpret_cast<CUcontext>(stream == nullptr ? &call.context() : &found->context());
    return Result::kSuccess;
  });
}

CUresult CUDAAPI entry_cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* out) {
  return run("cuStreamIsCapturing", Needs::kContext, [&](Call&) {
    if (stream != nullptr && gpu_host::test_driver::find_stream(stream) == nullptr) return Result::kInvalidHandle;
    *out = CU_STREAM_CAPTURE_STATUS_NONE;  // the test driver captures no stream
    return Result::kSuccess;
  });
}

CUresult CUDAAPI entry_cuStreamSynchronize(CUstream stream) {
  return run("cuStreamSynchronize", Needs::kUncapturedContext,
             [&](Call& call) { return gpu_host::test_driver::synchronize(call, stream); });
}

CUresult CUDAAPI entry_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return run("cuStreamWaitEvent", Needs::kContext, [&](Call& call) {
    if (flags != CU_EVENT_WAIT_DEFAULT) return violate(Result::kInvalidValue, "the driver does not know the flags");
    return gpu_host::test_driver::wait_event(call, stream, event);
  });
}

CUresult CUDAAPI entry_cuEventCreate(CUevent* out, unsigned flags) {
  return run("cuEventCreate", Needs::kContext, [&](Call& call) {
    if ((flags & ~(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING)) != 0) {
      return violate(Result::kInvalidValue, "the driver does not know the flags");
    }
    const bool is_timed = (flags & CU_EVENT_DISABLE_TIMING) == 0;
    *out = static_cast<CUevent>(gpu_host::test_driver::add_event(call.context(), is_timed));
    return Result::kSuccess;
  });
}

CUresult CUDAAPI entry_cuEventDestroy(CUevent event) {
  return run("cuEventDestroy", Needs::kContext, [&](Call&) { return gpu_host::test_driver::remove_event(event); });
}

CUresult CUDAAPI entry_cuEventRecord(CUevent event, CUstream stream) {
  return run("cuEventRecord", Needs::kContext,
             [&](Call& call) { return gpu_host::test_driver::record(call, event, stream); });
}

CUresult CUDAAPI entry_cuEventQuery(CUevent event) {
  return run("cuEventQuery", Needs::kUncapturedContext, [&](Call&) { return gpu_host::test_driver::query(event); });
}

CUresult CUDAAPI entry_cuEventSynchronize(CUevent event) {
  return run("cuEventSynchronize", Needs::kUncapturedContext,
             [&](Call& call) { return gpu_host::test_driver::await_event(call, event); });
}

CUresult CUDAAPI entry_cuEventElapsedTime(float* out, CUevent begin, CUevent end) {
  return run("cuEventElapsedTime", Needs::kContext,
             [&](Call&) { return gpu_host::test_driver::elapsed(begin, end, *out); });
}

CUresult CUDAAPI entry_cuModuleLoadData(CUmodule* out, const void* image) {
  return run("cuModuleLoadData", Needs::kUncapturedContext, [&](Call& call) {
    return gpu_host::test_driver::load_module(call.context(), image, reinterpret_cast<void**>(out));
  });
}

CUresult CUDAAPI entry_cuModuleGetFunction(CUfunction* out, CUmodule module, const char* name) {
  return run("cuModuleGetFunction", Needs::kContext, [&](Call& call) {
    return gpu_host::test_driver::find_kernel(call, module, name, reinterpret_cast<void**>(out));
  });
}

CUresult CUDAAPI entry_cuFuncSetAttribute(CUfunction kernel, CUfunction_attribute attribute, int value) {
  return run("cuFuncSetAttribute", Needs::kContext, [&](Call& call) {
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
      return violate(Result::kInvalidValue, "the test driver does not know this attribute");
    }
    return gpu_host::test_driver::permit_launch_bytes(call, kernel, value);
  });
}

CUresult CUDAAPI entry_cuLaunchKernel(CUfunction kernel, unsigned groups_x, unsigned groups_y, unsigned groups_z,
                                      unsigned size_x, unsigned size_y, unsigned size_z, unsigned shared_bytes,
                                      CUstream stream, void** params, void** extra) {
  return run("cuLaunchKernel", Needs::kContext, [&](Call& call) {
    const std::span<const std::byte> arguments = arguments_of(params, extra);
    if (arguments.empty()) return violate(Result::kInvalidValue, "the test driver takes the arguments in one buffer");
    return gpu_host::test_driver::launch(
        call, kernel, stream, {{groups_x, groups_y, groups_z}, {size_x, size_y, size_z}, shared_bytes}, arguments);
  });
}

}  // namespace backplane::cuda::test_driver
