// SPDX-License-Identifier: Apache-2.0
// The constants of cuBLASLt that the plugin uses. Source: cublasLt.h and cublas_api.h of cuBLAS 13.1. cuBLAS 12 has
// the same constants. The test `cuda_cublaslt` compares the constants with the header, if the header is installed.
#pragma once

#include "gpu_host/blas_lt.hpp"

namespace backplane::cuda {

// cublasStatus_t
inline constexpr int32_t kCublasNotInitialized = 1, kCublasAllocFailed = 3, kCublasInvalidValue = 7,
                         kCublasArchMismatch = 8, kCublasMappingError = 11, kCublasExecutionFailed = 13,
                         kCublasInternalError = 14, kCublasNotSupported = 15, kCublasLicenseError = 16;
// cublasLtMatmulAlgo_t
inline constexpr uint32_t kCublasLtAlgorithmBytes = 64;

inline constexpr gpu_host::LtNumbers kCublasLtNumbers{
    .not_supported = kCublasNotSupported,
    .arch_mismatch = kCublasArchMismatch,
    .op_n = 0,                   // CUBLAS_OP_N
    .op_t = 1,                   // CUBLAS_OP_T
    .compute_f32 = 68,           // CUBLAS_COMPUTE_32F
    .compute_tf32 = 77,          // CUBLAS_COMPUTE_32F_FAST_TF32
    .trans_a = 3,                // CUBLASLT_MATMUL_DESC_TRANSA
    .trans_b = 4,                // CUBLASLT_MATMUL_DESC_TRANSB
    .epilogue = 7,               // CUBLASLT_MATMUL_DESC_EPILOGUE
    .bias_pointer = 8,           // CUBLASLT_MATMUL_DESC_BIAS_POINTER
    .bias_type = 26,             // CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE
    .batch_count = 5,            // CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT
    .batch_stride = 6,           // CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET
    .max_workspace = 1,          // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
    .reduction_mask = 3,         // CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK
    .alignments = {5, 6, 7, 8},  // CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES to _D_BYTES
    .algorithm_bytes = kCublasLtAlgorithmBytes};

const gpu_host::LtKind& cublaslt();

}  // namespace backplane::cuda
