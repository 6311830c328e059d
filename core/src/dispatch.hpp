// SPDX-License-Identifier: Apache-2.0
// From an eager call to the plugin: key, plan, bounds, staging, execution.
#pragma once

#include <backplane/backplane.h>

#include "plan_cache.hpp"
#include "stream.hpp"

namespace bp {

// Throws; see bph_execute.
void execute(Stream& stream, const bph_call& call);

// One operator on views that core made itself (staging).
void execute_views(Stream& stream, const OpRow& row, const void* attributes, const bp_tensor_desc* inputs,
                   const bp_operand* input_operands, uint32_t input_count, const bp_tensor_desc* outputs,
                   const bp_operand* output_operands, uint32_t output_count, const bp_operand* scalars);

// Throws; see bph_device_supports.
bph_support supports(Device& device, const bph_call& call);

}  // namespace bp
