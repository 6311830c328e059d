// SPDX-License-Identifier: Apache-2.0
// The values of hipBLASLt's constants that the plugin uses, from hipblaslt.h and hipblas-common.h of ROCm 6.3 and 7.
// The test `hip_hipblaslt` compares the values with the header, if the machine has it.
#pragma once

#include "gpu_host/blas_lt.hpp"

namespace backplane::hip {

// Values of hipblasStatus_t.
inline constexpr int32_t kHipblasNotInitialized = 1, kHipblasAllocFailed = 2, kHipblasInvalidValue = 3,
                         kHipblasMappingError = 4, kHipblasExecutionFailed = 5, kHipblasInternalError = 6,
                         kHipblasNotSupported = 7, kHipblasArchMismatch = 8, kHipblasHandleIsNullptr = 9,
                         kHipblasInvalidEnum = 10, kHipblasUnknown = 11;
// Size of hipblasLtMatmulAlgo_t.
inline constexpr uint32_t kHipblasLtAlgorithmBytes = 24;

inline constexpr gpu_host::LtNumbers kHipblasLtNumbers{
    .not_supported = kHipblasNotSupported,
    .arch_mismatch = kHipblasArchMismatch,
    .op_n = 111,         // HIPBLAS_OP_N
    .op_t = 112,         // HIPBLAS_OP_T
    .compute_f32 = 2,    // HIPBLAS_COMPUTE_32F
    .compute_tf32 = 2,   // HIPBLAS_COMPUTE_32F, because devices differ in the support of HIPBLAS_COMPUTE_32F_FAST_TF32
    .trans_a = 0,        // HIPBLASLT_MATMUL_DESC_TRANSA
    .trans_b = 1,        // HIPBLASLT_MATMUL_DESC_TRANSB
    .epilogue = 2,       // HIPBLASLT_MATMUL_DESC_EPILOGUE
    .bias_pointer = 3,   // HIPBLASLT_MATMUL_DESC_BIAS_POINTER
    .bias_type = 4,      // HIPBLASLT_MATMUL_DESC_BIAS_DATA_TYPE
    .batch_count = 0,    // HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT
    .batch_stride = 1,   // HIPBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET
    .max_workspace = 1,  // HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
    .reduction_mask = gpu_host::kLtAbsent,
    .alignments = {gpu_host::kLtAbsent, gpu_host::kLtAbsent, gpu_host::kLtAbsent, gpu_host::kLtAbsent},
    .algorithm_bytes = kHipblasLtAlgorithmBytes};

const gpu_host::LtKind& hipblaslt();

}  // namespace backplane::hip
