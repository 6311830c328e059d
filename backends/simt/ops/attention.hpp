// SPDX-License-Identifier: Apache-2.0
// The parts of attention that the shared kernels and a stack's own kernels have in common.
#pragma once

#include "ops/tile.hpp"

namespace backplane::simt {

#include "device/attention_params.h"

// Returns the operator that computes attention of `dtype` with the shared kernels.
std::shared_ptr<const Operator> shared_attention(uint32_t dtype);
// The number of kernels of this operator's plans for f16 and bf16.
inline constexpr uint32_t kSharedAttentionKernels = 2;

// Returns UNSUPPORTED for shapes that exceed the kernels' 32-bit indices.
kit::Status check_attention(const Call& call);
// Returns the shapes, strides and attributes of a call. The caller sets the fields that divide the work.
AttentionParams attention_params(const Call& call);
// Returns the operands in the order of AttentionParams::offsets.
std::array<Place, 6> attention_places(const Call& call);

}  // namespace backplane::simt
