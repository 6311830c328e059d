// SPDX-License-Identifier: Apache-2.0
// Compares the constants in runtime/cublaslt.hpp with the header of cuBLASLt. The build compiles this file only if
// the header is installed.
#include <cublasLt.h>
#include <gtest/gtest.h>

#include "runtime/cublaslt.hpp"

namespace backplane::cuda {

namespace {

constexpr const gpu_host::LtNumbers& kOurs = kCublasLtNumbers;

static_assert(kCublasNotInitialized == CUBLAS_STATUS_NOT_INITIALIZED &&
              kCublasAllocFailed == CUBLAS_STATUS_ALLOC_FAILED);
static_assert(kCublasInvalidValue == CUBLAS_STATUS_INVALID_VALUE && kCublasArchMismatch == CUBLAS_STATUS_ARCH_MISMATCH);
static_assert(kCublasMappingError == CUBLAS_STATUS_MAPPING_ERROR);
static_assert(kCublasExecutionFailed == CUBLAS_STATUS_EXECUTION_FAILED);
static_assert(kCublasInternalError == CUBLAS_STATUS_INTERNAL_ERROR);
static_assert(kCublasNotSupported == CUBLAS_STATUS_NOT_SUPPORTED && kCublasLicenseError == CUBLAS_STATUS_LICENSE_ERROR);
static_assert(kOurs.op_n == CUBLAS_OP_N && kOurs.op_t == CUBLAS_OP_T);
static_assert(kOurs.compute_f32 == CUBLAS_COMPUTE_32F && kOurs.compute_tf32 == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(gpu_host::kLtF32 == CUDA_R_32F && gpu_host::kLtF16 == CUDA_R_16F && gpu_host::kLtBf16 == CUDA_R_16BF);
static_assert(gpu_host::kLtNoEpilogue == CUBLASLT_EPILOGUE_DEFAULT && gpu_host::kLtBias == CUBLASLT_EPILOGUE_BIAS);
static_assert(kOurs.trans_a == CUBLASLT_MATMUL_DESC_TRANSA && kOurs.trans_b == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(kOurs.epilogue == CUBLASLT_MATMUL_DESC_EPILOGUE);
static_assert(kOurs.bias_pointer == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(kOurs.bias_type == CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
static_assert(kOurs.batch_count == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
static_assert(kOurs.batch_stride == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(kOurs.max_workspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(kOurs.reduction_mask == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
static_assert(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE == 2);
static_assert(kOurs.alignments[0] == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(kOurs.alignments[1] == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
static_assert(kOurs.alignments[2] == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
static_assert(kOurs.alignments[3] == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(kOurs.algorithm_bytes == sizeof(cublasLtMatmulAlgo_t));
static_assert(offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) == kOurs.algorithm_bytes);
static_assert(offsetof(cublasLtMatmulHeuristicResult_t, state) == kOurs.algorithm_bytes + sizeof(std::size_t));
static_assert(sizeof(cublasLtMatmulHeuristicResult_t) <= gpu_host::kLtMaxHeuristicBytes);

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
      has_types(&cublasLt##name, decltype(plain<int>(static_cast<int32_t (*)(__VA_ARGS__)>(nullptr))){nullptr}));
#include "gpu_host/blas_lt.def"
#undef BP_LT

TEST(Cublaslt, TheNumbersAreThoseOfTheHeader) { SUCCEED() << CUBLAS_VER_MAJOR; }

}  // namespace

}  // namespace backplane::cuda
