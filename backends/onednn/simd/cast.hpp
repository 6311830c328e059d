// SPDX-License-Identifier: Apache-2.0
// Vectorised kernels of the operator cast.
#pragma once

#include "simd/vector_kernel.hpp"

namespace backplane::onednn {

// Returns the kernel that is compiled for this processor. Returns null if from == to, or if only the plain
// kernel supports this pair of dtypes.
VectorKernel cast_kernel(uint32_t from, uint32_t to);

}  // namespace backplane::onednn
