// SPDX-License-Identifier: Apache-2.0
// The choice between the shared kernels of attention and those for tensor cores.
#pragma once

#include "operator.hpp"

namespace backplane::cuda {

// Replaces attention of f16 and bf16. The new operators also have the kernels of kernels/attention_mma.h if the device
// has tensor cores.
void add_tensor_attention(simt::Operators& operators);

}  // namespace backplane::cuda
