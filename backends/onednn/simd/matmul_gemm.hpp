// SPDX-License-Identifier: Apache-2.0
// The vectorised last step of the operator gemm.
#pragma once

#include <cstdint>

namespace backplane::onednn {

// Computes out[i] = alpha * product[i] + beta * c[i] for 0 <= i < count. If `c` is null, out[i] = alpha *
// product[i]. All operands are contiguous. `product` may be the same memory as an f32 `out`. `c` has the
// output's dtype.
using ScaledSumKernel = void (*)(float alpha, const float* product, float beta, const void* c, void* out,
                                 int64_t count);

// Returns the kernel for an output of `dtype`, or null if there is none.
ScaledSumKernel scaled_sum_kernel(uint32_t dtype);

}  // namespace backplane::onednn
