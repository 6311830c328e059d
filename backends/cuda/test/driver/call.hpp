// SPDX-License-Identifier: Apache-2.0
// The entry points of the CUDA test driver. The folder gpu_host/test_driver implements the driver
// and lists its environment variables. TEST_DRIVER_ARCHITECTURE is the compute capability of the
// devices, 80 by default.
#pragma once

#include <cuda.h>

#include "gpu_host/test_driver/driver.hpp"

namespace backplane::cuda::test_driver {

using gpu_host::test_driver::Call;
using gpu_host::test_driver::Needs;
using gpu_host::test_driver::Result;

inline CUresult code_of(Result result) { return static_cast<CUresult>(result); }

// Executes a function of the API. `body(call)` returns the result.
template <class Body>
CUresult run(const char* function, Needs needs, const Body& body) {
  Call call(function, needs);
  return code_of(call.result() == Result::kSuccess ? body(call) : call.result());
}

// Returns the buffer of arguments of a launch, or nothing if the arguments are not in one buffer.
inline std::span<const std::byte> arguments_of(void** params, void** extra) {
  const bool has_buffer = params == nullptr && extra != nullptr && extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER &&
                          extra[2] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[4] == CU_LAUNCH_PARAM_END;
  if (!has_buffer) return {};
  return {static_cast<const std::byte*>(extra[1]), *static_cast<const std::size_t*>(extra[3])};
}

inline void* address_of(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

// Declares entry_NAME for each function that the plugin calls. The library exports entry_NAME as
// the symbol that the plugin looks up. NAME and the symbol may differ, because cuda.h defines some
// names as macros for later versions of a function.
#define BP_CU(name, symbol) \
  extern "C" __attribute__((visibility("default"))) decltype(::name) entry_##name asm(#symbol);
#include "runtime/external_functions.def"
#include "runtime/functions.def"
#include "runtime/graph_functions.def"
#include "runtime/tensor_functions.def"
#undef BP_CU

}  // namespace backplane::cuda::test_driver
