// SPDX-License-Identifier: Apache-2.0
// Vectorised kernels of cast.
#pragma once

#include "simd/vector_kernel.hpp"

namespace backplane::onednn {

// The kernel compiled for this processor. Null if the plain kernel serves the pair, or if from ==
// to.
VectorKernel cast_kernel(uint32_t from, uint32_t to);

}  // namespace backplane::onednn
