// SPDX-License-Identifier: Apache-2.0
// Vectorised kernels of the operator unary.
#pragma once

#include "simd/vector_kernel.hpp"

namespace backplane::onednn {

// Returns the kernel of a function BP_UNARY_* that is compiled for this processor, or null if there is
// none for the function and the dtype.
VectorKernel function_kernel(uint32_t function, uint32_t dtype);

}  // namespace backplane::onednn
