// SPDX-License-Identifier: Apache-2.0
// The choice between the kernels of simt for attention and the kernels for tensor cores.
#pragma once

#include "operator.hpp"

namespace backplane::cuda {

// Replaces the operator `attention` of f16 and bf16. If the device has tensor cores, the new operator also has
// kernels for tensor cores.
void add_tensor_attention(simt::Operators& operators);

}  // namespace backplane::cuda
