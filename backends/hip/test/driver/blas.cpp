// SPDX-License-Identifier: Apache-2.0
// Exports the test drivers' library for matrix products with the names and constants of hipBLASLt.
#include "gpu_host/test_driver/blas.hpp"
#include "runtime/hipblaslt.hpp"

namespace backplane::gpu_host::test_driver {

const BlasTraits& blas_traits() {
  static constexpr BlasTraits kTraits{hip::kHipblasLtNumbers, hip::kHipblasAllocFailed, hip::kHipblasInvalidValue,
                                      hip::kHipblasExecutionFailed};
  return kTraits;
}

}  // namespace backplane::gpu_host::test_driver

extern "C" __attribute__((visibility("default"))) int32_t library_version(void*, int* out) asm("hipblasLtGetVersion");
int32_t library_version(void*, int* out) {
  *out = 100200;
  return 0;
}
