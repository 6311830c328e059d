// SPDX-License-Identifier: Apache-2.0
#include "runtime/hipblaslt.hpp"

#include <dlfcn.h>

#include <algorithm>

namespace backplane::hip {

namespace {

constexpr const char* kFiles[] = {"libhipblaslt.so.1", "libhipblaslt.so.0", "libhipblaslt.so"};

constexpr gpu_host::LtResult kResults[] = {
    {kHipblasNotInitialized, "HIPBLAS_STATUS_NOT_INITIALIZED", BP_UNAVAILABLE},
    {kHipblasAllocFailed, "HIPBLAS_STATUS_ALLOC_FAILED", BP_OUT_OF_MEMORY},
    {kHipblasInvalidValue, "HIPBLAS_STATUS_INVALID_VALUE", BP_INTERNAL},
    {kHipblasMappingError, "HIPBLAS_STATUS_MAPPING_ERROR", BP_EXECUTION_FAILED},
    {kHipblasExecutionFailed, "HIPBLAS_STATUS_EXECUTION_FAILED", BP_EXECUTION_FAILED},
    {kHipblasInternalError, "HIPBLAS_STATUS_INTERNAL_ERROR", BP_EXECUTION_FAILED},
    {kHipblasNotSupported, "HIPBLAS_STATUS_NOT_SUPPORTED", BP_INTERNAL},
    {kHipblasArchMismatch, "HIPBLAS_STATUS_ARCH_MISMATCH", BP_INTERNAL},
    {kHipblasHandleIsNullptr, "HIPBLAS_STATUS_HANDLE_IS_NULLPTR", BP_INTERNAL},
    {kHipblasInvalidEnum, "HIPBLAS_STATUS_INVALID_ENUM", BP_INTERNAL},
    {kHipblasUnknown, "HIPBLAS_STATUS_UNKNOWN", BP_EXECUTION_FAILED}};

std::string version_of(void* library, void* handle) {
  const auto get = reinterpret_cast<int32_t (*)(void*, int*)>(::dlsym(library, "hipblasLtGetVersion"));
  int version = 0;  // 100000 * major + 100 * minor + patch
  if (get == nullptr || get(handle, &version) != 0) return "of an unknown version";
  return kit::text(version / 100000, ".", version / 100 % 1000, ".", version % 100);
}

// hipBLASLt of ROCm 6.3 and later has kernels for these families.
bool has_kernels(std::string_view architecture) {
  constexpr std::string_view kFamilies[] = {"gfx908", "gfx90a", "gfx94", "gfx95", "gfx11", "gfx12"};
  return std::ranges::any_of(kFamilies, [&](std::string_view each) { return architecture.starts_with(each); });
}

// The matrix units of gfx90a flush subnormals of 16-bit operands, which the specification prohibits.
bool is_accurate(uint32_t dtype, std::string_view architecture) {
  return dtype == BP_F32 || !architecture.starts_with("gfx90a");
}

}  // namespace

const gpu_host::LtKind& hipblaslt() {
  static constexpr gpu_host::LtKind kKind{.name = "hipBLASLt",
                                          .prefix = "hipblasLt",
                                          .setting = "BACKPLANE_HIP_BLAS",
                                          .remedy = "install hipBLASLt of ROCm 6.3 or newer",
                                          .files = kFiles,
                                          .results = kResults,
                                          .numbers = kHipblasLtNumbers,
                                          .is_deterministic = false,  // hipBLASLt promises no determinism
                                          .version = version_of,
                                          .has_kernels = has_kernels,
                                          .is_accurate = is_accurate};
  return kKind;
}

}  // namespace backplane::hip
