// SPDX-License-Identifier: Apache-2.0
// Vectorised kernels of activation_bwd.
#pragma once

#include "simd/vector_kernel.hpp"

namespace backplane::onednn {

// Returns the kernel for BP_ACTIVATION_*, which is compiled for this processor, or null if there is
// none for the dtype. The inputs are dy and z.
VectorKernel activation_bwd_kernel(uint32_t activation, uint32_t dtype);

}  // namespace backplane::onednn
