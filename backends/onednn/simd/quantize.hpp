// SPDX-License-Identifier: Apache-2.0
// Vectorised kernels of quantize and dequantize with 8 bits, for f32, f16 and bf16.
#pragma once

#include "simd/vector_kernel.hpp"

namespace backplane::onednn {

// The inputs of a kernel are the data, the scale and, if `has_zero` is set, the zero point. Each input has one
// element per element of the output. `data` is the dtype of the float operand, `scale` is the dtype of the
// scale, and `steps` is the dtype of the integers. The functions return the kernels that are compiled for this
// processor, or null if there are none for the dtypes.
VectorKernel quantize_kernel(uint32_t data, uint32_t scale, uint32_t steps, bool has_zero);
VectorKernel dequantize_kernel(uint32_t data, uint32_t scale, uint32_t steps, bool has_zero);

}  // namespace backplane::onednn
