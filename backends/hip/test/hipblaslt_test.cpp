// SPDX-License-Identifier: Apache-2.0
// Compares the values in runtime/hipblaslt.hpp with the header of hipBLASLt. The build compiles this file only if the
// machine has the header.
#include <gtest/gtest.h>
#include <hipblaslt/hipblaslt.h>

#include "runtime/hipblaslt.hpp"

namespace backplane::hip {

namespace {

constexpr const gpu_host::LtNumbers& kOurs = kHipblasLtNumbers;

static_assert(kHipblasNotInitialized == HIPBLAS_STATUS_NOT_INITIALIZED);
static_assert(kHipblasAllocFailed == HIPBLAS_STATUS_ALLOC_FAILED);
static_assert(kHipblasInvalidValue == HIPBLAS_STATUS_INVALID_VALUE);
static_assert(kHipblasMappingError == HIPBLAS_STATUS_MAPPING_ERROR);
static_assert(kHipblasExecutionFailed == HIPBLAS_STATUS_EXECUTION_FAILED);
static_assert(kHipblasInternalError == HIPBLAS_STATUS_INTERNAL_ERROR);
static_assert(kHipblasNotSupported == HIPBLAS_STATUS_NOT_SUPPORTED);
static_assert(kHipblasArchMismatch == HIPBLAS_STATUS_ARCH_MISMATCH);
static_assert(kHipblasHandleIsNullptr == HIPBLAS_STATUS_HANDLE_IS_NULLPTR);
static_assert(kHipblasInvalidEnum == HIPBLAS_STATUS_INVALID_ENUM && kHipblasUnknown == HIPBLAS_STATUS_UNKNOWN);
static_assert(kOurs.op_n == HIPBLAS_OP_N && kOurs.op_t == HIPBLAS_OP_T);
static_assert(kOurs.compute_f32 == HIPBLAS_COMPUTE_32F);
static_assert(gpu_host::kLtF32 == HIP_R_32F && gpu_host::kLtF16 == HIP_R_16F && gpu_host::kLtBf16 == HIP_R_16BF);
static_assert(gpu_host::kLtNoEpilogue == HIPBLASLT_EPILOGUE_DEFAULT && gpu_host::kLtBias == HIPBLASLT_EPILOGUE_BIAS);
static_assert(kOurs.trans_a == HIPBLASLT_MATMUL_DESC_TRANSA && kOurs.trans_b == HIPBLASLT_MATMUL_DESC_TRANSB);
static_assert(kOurs.epilogue == HIPBLASLT_MATMUL_DESC_EPILOGUE);
static_assert(kOurs.bias_pointer == HIPBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(kOurs.bias_type == HIPBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
static_assert(kOurs.batch_count == HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
static_assert(kOurs.batch_stride == HIPBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(kOurs.max_workspace == HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(kOurs.algorithm_bytes == sizeof(hipblasLtMatmulAlgo_t));
static_assert(offsetof(hipblasLtMatmulHeuristicResult_t, workspaceSize) == kOurs.algorithm_bytes);
static_assert(offsetof(hipblasLtMatmulHeuristicResult_t, state) == kOurs.algorithm_bytes + sizeof(std::size_t));
static_assert(sizeof(hipblasLtMatmulHeuristicResult_t) <= gpu_host::kLtMaxHeuristicBytes);

// Converts a type of the header to the type with which the plugin calls a function.
template <class T>
struct Plain {
  using type = std::conditional_t<std::is_enum_v<T>, int32_t, std::conditional_t<std::is_pointer_v<T>, void*, T>>;
};
template <class T>
using PlainType = typename Plain<T>::type;
template <class Result, class... Parameters>
constexpr bool has_types(Result (*)(Parameters...), int32_t (*)(PlainType<Parameters>...)) {
  return sizeof(Result) == sizeof(int32_t);
}
template <class Result, class... Parameters>
auto plain(int32_t (*)(Parameters...)) -> int32_t (*)(PlainType<Parameters>...);

#define BP_LT(name, ...) \
  static_assert(         \
      has_types(&hipblasLt##name, decltype(plain<int>(static_cast<int32_t (*)(__VA_ARGS__)>(nullptr))){nullptr}));
#include "gpu_host/blas_lt.def"
#undef BP_LT

TEST(Hipblaslt, TheNumbersAreThoseOfTheHeader) { SUCCEED() << HIP_VERSION; }

}  // namespace

}  // namespace backplane::hip
