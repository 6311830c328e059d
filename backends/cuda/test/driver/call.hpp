// SPDX-License-Identifier: Apache-2.0
// Calls of the CUDA test driver. The folder gpu_host/test_driver implements them.
#pragma once

#include <cuda.h>

#include "gpu_host/test_driver/driver.hpp"

#define EXPORTED extern "C" __attribute__((visibility("default")))

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

}  // namespace backplane::cuda::test_driver
