// SPDX-License-Identifier: Apache-2.0
// The constants and names of cuBLASLt, with which the CUDA test driver exports a library for matrix products.
#include "gpu_host/test_driver/blas.hpp"
#include "runtime/cublaslt.hpp"

namespace backplane::gpu_host::test_driver {

const BlasTraits& blas_traits() {
  static constexpr BlasTraits kTraits{cuda::kCublasLtNumbers, cuda::kCublasAllocFailed, cuda::kCublasInvalidValue,
                                      cuda::kCublasExecutionFailed};
  return kTraits;
}

}  // namespace backplane::gpu_host::test_driver

extern "C" __attribute__((visibility("default"))) std::size_t library_version() asm("cublasLtGetVersion");
std::size_t library_version() { return 130101; }
