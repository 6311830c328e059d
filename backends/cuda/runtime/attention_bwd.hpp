// SPDX-License-Identifier: Apache-2.0
// The operator `attention_bwd` on devices with tensor cores.
#pragma once

#include "operator.hpp"

namespace backplane::cuda {

// Adds the operator `attention_bwd` of f16 and bf16. Devices without tensor cores and rows of more than 128 elements
// are UNSUPPORTED, so that core decomposes the operator.
void add_tensor_attention_bwd(simt::Operators& operators);

}  // namespace backplane::cuda
