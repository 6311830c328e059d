// SPDX-License-Identifier: Apache-2.0
// Vectorised kernels of activation_bwd.
#pragma once

#include "simd/vector_kernel.hpp"

namespace backplane::onednn {

// Returns the kernel of `activation` (BP_ACTIVATION_*) that is compiled for this processor, or null if there is
// none for the dtype. The inputs of the kernel are dy and the activation's input z.
VectorKernel activation_bwd_kernel(uint32_t activation, uint32_t dtype);

}  // namespace backplane::onednn
