// SPDX-License-Identifier: Apache-2.0
#include "runtime/api.hpp"

#include <dlfcn.h>

namespace backplane::opencl {

namespace {

constexpr const char* kLoader = "libOpenCL.so.1";

const char* name_of(cl_int code) {
  switch (code) {
#define BP_CL_CODE(name) \
  case name:             \
    return #name;
    BP_CL_CODE(CL_DEVICE_NOT_FOUND)
    BP_CL_CODE(CL_DEVICE_NOT_AVAILABLE)
    BP_CL_CODE(CL_COMPILER_NOT_AVAILABLE)
    BP_CL_CODE(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    BP_CL_CODE(CL_OUT_OF_RESOURCES)
    BP_CL_CODE(CL_OUT_OF_HOST_MEMORY)
    BP_CL_CODE(CL_BUILD_PROGRAM_FAILURE)
    BP_CL_CODE(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    BP_CL_CODE(CL_INVALID_VALUE)
    BP_CL_CODE(CL_INVALID_DEVICE)
    BP_CL_CODE(CL_INVALID_CONTEXT)
    BP_CL_CODE(CL_INVALID_COMMAND_QUEUE)
    BP_CL_CODE(CL_INVALID_MEM_OBJECT)
    BP_CL_CODE(CL_INVALID_BINARY)
    BP_CL_CODE(CL_INVALID_PROGRAM)
    BP_CL_CODE(CL_INVALID_PROGRAM_EXECUTABLE)
    BP_CL_CODE(CL_INVALID_KERNEL_NAME)
    BP_CL_CODE(CL_INVALID_KERNEL)
    BP_CL_CODE(CL_INVALID_ARG_INDEX)
    BP_CL_CODE(CL_INVALID_ARG_VALUE)
    BP_CL_CODE(CL_INVALID_ARG_SIZE)
    BP_CL_CODE(CL_INVALID_KERNEL_ARGS)
    BP_CL_CODE(CL_INVALID_WORK_GROUP_SIZE)
    BP_CL_CODE(CL_INVALID_EVENT)
    BP_CL_CODE(CL_INVALID_OPERATION)
    BP_CL_CODE(CL_INVALID_BUFFER_SIZE)
#undef BP_CL_CODE
    default:
      return "a code that cl.h explains";
  }
}

bp_status kind_of(cl_int code) {
  switch (code) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE:
      return BP_OUT_OF_MEMORY;
    case CL_DEVICE_NOT_AVAILABLE:
      return BP_DEVICE_LOST;
    default:
      return BP_INTERNAL;
  }
}

kit::Result<const Api*> load_once() {
  void* library = ::dlopen(kLoader, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return kit::Status{BP_UNAVAILABLE, kit::text("opencl: there is no ", kLoader,
                                                 "; install an OpenCL loader such as ocl-icd-libopencl1 "
                                                 "and the driver of the device (",
                                                 ::dlerror(), ")")};
  }
  static Api api;
#define BP_CL(name)                                                                                             \
  api.name = reinterpret_cast<decltype(api.name)>(::dlsym(library, #name));                                     \
  if (api.name == nullptr) {                                                                                    \
    return kit::Status{                                                                                         \
        BP_UNAVAILABLE,                                                                                         \
        kit::text("opencl: ", kLoader, " has no " #name ", which OpenCL 2.1 demands; install a newer loader")}; \
  }
#define BP_CL_EXTENSION(name)
#include "runtime/functions.def"
#undef BP_CL
#undef BP_CL_EXTENSION
  return &api;
}

}  // namespace

kit::Result<const Api*> Api::load() {
  // The result is never destroyed, because no destructor may run at exit.
  static auto* const loaded = new kit::Result<const Api*>(load_once());
  return *loaded;
}

Extensions Extensions::of(const Api& api, cl_platform_id platform) {
  Extensions out;
#define BP_CL(name)
#define BP_CL_EXTENSION(name) \
  out.name = reinterpret_cast<name##_fn>(api.clGetExtensionFunctionAddressForPlatform(platform, #name));
#include "runtime/functions.def"
#undef BP_CL
#undef BP_CL_EXTENSION
  return out;
}

kit::Status status_of(cl_int code, const char* call) {
  if (code == CL_SUCCESS) return {};
  return {kind_of(code), kit::text("opencl: ", call, " returned ", code, ", ", name_of(code)), code};
}

}  // namespace backplane::opencl
