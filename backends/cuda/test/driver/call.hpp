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

inline void* address_of(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

// Declares entry_NAME for each function that the plugin calls. The library exports entry_NAME as
// the symbol that the plugin looks up. NAME and the symbol may differ, because cuda.h defines some
// names as macros for later versions of a function.
#define BP_CU(name, symbol) \
  extern "C" __attribute__((visibility("default"))) decltype(::name) entry_##name asm(#symbol);
#include "runtime/functions.def"
#undef BP_CU

}  // namespace backplane::cuda::test_driver
