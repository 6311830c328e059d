// SPDX-License-Identifier: Apache-2.0
#include "runtime/cublaslt.hpp"

#include <dlfcn.h>

namespace backplane::cuda {

namespace {

constexpr const char* kFiles[] = {"libcublasLt.so.13", "libcublasLt.so.12"};

constexpr gpu_host::LtResult kResults[] = {
    {kCublasNotInitialized, "CUBLAS_STATUS_NOT_INITIALIZED", BP_UNAVAILABLE},
    {kCublasAllocFailed, "CUBLAS_STATUS_ALLOC_FAILED", BP_OUT_OF_MEMORY},
    {kCublasInvalidValue, "CUBLAS_STATUS_INVALID_VALUE", BP_INTERNAL},
    {kCublasArchMismatch, "CUBLAS_STATUS_ARCH_MISMATCH", BP_INTERNAL},
    {kCublasMappingError, "CUBLAS_STATUS_MAPPING_ERROR", BP_EXECUTION_FAILED},
    {kCublasExecutionFailed, "CUBLAS_STATUS_EXECUTION_FAILED", BP_EXECUTION_FAILED},
    {kCublasInternalError, "CUBLAS_STATUS_INTERNAL_ERROR", BP_EXECUTION_FAILED},
    {kCublasNotSupported, "CUBLAS_STATUS_NOT_SUPPORTED", BP_INTERNAL},
    {kCublasLicenseError, "CUBLAS_STATUS_LICENSE_ERROR", BP_INTERNAL}};

std::string version_of(void* library, void*) {
  const auto get = reinterpret_cast<std::size_t (*)()>(::dlsym(library, "cublasLtGetVersion"));
  if (get == nullptr) return "of an unknown version";
  const std::size_t version = get();  // 10000 * major + 100 * minor + patch
  return kit::text(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

}  // namespace

const gpu_host::LtKind& cublaslt() {
  static constexpr gpu_host::LtKind kKind{.name = "cuBLASLt",
                                          .prefix = "cublasLt",
                                          .setting = "BACKPLANE_CUDA_BLAS",
                                          .remedy = "install cuBLAS of CUDA 12 or 13",
                                          .files = kFiles,
                                          .results = kResults,
                                          .numbers = kCublasLtNumbers,
                                          .is_deterministic = true,
                                          .version = version_of,
                                          .has_kernels = [](std::string_view) { return true; },
                                          .is_accurate = [](uint32_t, std::string_view) { return true; }};
  return kKind;
}

}  // namespace backplane::cuda
