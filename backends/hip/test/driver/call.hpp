// SPDX-License-Identifier: Apache-2.0
// Calls of the HIP test driver. The folder gpu_host/test_driver implements the calls and lists the environment
// variables of all test drivers. HIP's test driver adds these variables:
//   TEST_DRIVER_ARCHITECTURE  architecture of the devices; gfx90a by default. Architectures that begin with gfx9 have
//                             64 lanes, and all others have 32
//   TEST_DRIVER_CALLER        the device that each thread has selected before its first call; 0 by default. With
//                             `all`, successive threads have selected successive devices, beginning with device 1
#pragma once

#include "gpu_host/test_driver/driver.hpp"
#include "runtime/api.hpp"

namespace backplane::hip::test_driver {

using gpu_host::test_driver::Call;
using gpu_host::test_driver::Needs;
using gpu_host::test_driver::Result;
using gpu_host::test_driver::Thread;

// Executes a function of the API. `body(call)` returns the result. A failure becomes the thread's last failure.
template <class Body>
hipError_t run(const char* function, Needs needs, const Body& body) {
  Call call(function, needs);
  const Result result = call.result() == Result::kSuccess ? body(call) : call.result();
  if (result != Result::kSuccess) Thread::current().last_failure = result;
  return static_cast<hipError_t>(result);
}

// Returns the buffer of arguments of a launch, or nothing if the arguments are not in one buffer.
inline std::span<const std::byte> arguments_of(void** params, void** extra) {
  const bool has_buffer = params == nullptr && extra != nullptr && extra[0] == HIP_LAUNCH_PARAM_BUFFER_POINTER &&
                          extra[2] == HIP_LAUNCH_PARAM_BUFFER_SIZE && extra[4] == HIP_LAUNCH_PARAM_END;
  if (!has_buffer) return {};
  return {static_cast<const std::byte*>(extra[1]), *static_cast<const std::size_t*>(extra[3])};
}

// Declares entry_NAME for each function NAME that the plugin calls. The library exports entry_NAME as NAME.
#define BP_HIP(name, ...) \
  extern "C" __attribute__((visibility("default"))) hipError_t entry_##name(__VA_ARGS__) asm(#name);
#include "runtime/functions.def"
#include "runtime/graph_functions.def"
#undef BP_HIP
extern "C" __attribute__((visibility("default"))) const char* entry_error_name(hipError_t) asm("hipGetErrorName");
extern "C" __attribute__((visibility("default"))) hipError_t entry_get_properties(Properties*,
                                                                                  int) asm("hipGetDeviceProperties");

}  // namespace backplane::hip::test_driver
