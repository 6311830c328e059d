// SPDX-License-Identifier: Apache-2.0
// Vectorised kernels of the elementwise operators. Each function returns the kernel that is compiled for this
// processor, or null if only the plain kernel supports the arguments.
#pragma once

#include "simd/vector_kernel.hpp"

namespace backplane::onednn {

VectorKernel unary_kernel(uint32_t op, uint32_t dtype);
VectorKernel activation_kernel(uint32_t activation, uint32_t from, uint32_t to);
VectorKernel binary_kernel(uint32_t op, uint32_t dtype);
VectorKernel compare_kernel(uint32_t predicate, uint32_t dtype);
VectorKernel pow_kernel(uint32_t dtype);
VectorKernel select_kernel(uint32_t bytes);  // `bytes` is the size of an element

}  // namespace backplane::onednn
