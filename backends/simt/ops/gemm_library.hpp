// SPDX-License-Identifier: Apache-2.0
// Matrix products that a library of the stack computes (Launcher::multiply). If the library cannot apply
// the bias and the activation, a kernel applies them.
#pragma once

#include "ops/gemm.hpp"

namespace backplane::simt {

// Returns the bytes of workspace for the descriptor of matmul or linear.
uint64_t gemm_library_workspace(const bp_op_desc& desc);

// The properties of a product that Gemm does not contain.
struct GemmTypes {
  uint32_t c, a, b, bias;  // dtypes; bias is 0 if there is no bias
  uint32_t precision;      // BP_PRECISION_*
};

// Enqueues the product, or returns false if kernels must compute it. If the library cannot store c
// with its bias and activation, the library stores f32 sums in the workspace, and the kernel
// `combine` stores c.
kit::Result<bool> multiply_with_library(Launcher& launcher, const Program& program, const Gemm& gemm,
                                        const GemmTypes& types, const Call& call);

}  // namespace backplane::simt
