// SPDX-License-Identifier: Apache-2.0
// Declares the checks of operator descriptors for the layer `validation`.
#pragma once

#include "layers/validation/call.hpp"

namespace backplane::core::layers {

// Returns a checked copy of a descriptor. Refuses a descriptor that breaks a rule. `attributes`
// receives the attributes of a known operator.
bp_op_desc check_descriptor(const Call& call, const bp_op_desc* given, unsigned char* attributes);

// Refuses the call unless `desc` equals the plan's descriptor. If the plan serves any size, `desc`
// need only be in the plan's class. If `staged` is true, staged operands may differ as the ABI
// allows.
void check_same_plan(const Call& call, const CheckedPlan& plan, const bp_op_desc& desc, bool staged);

}  // namespace backplane::core::layers
