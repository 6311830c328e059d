// SPDX-License-Identifier: Apache-2.0
// The layer `validation`: checks of descriptors.
#pragma once

#include "layers/validation/call.hpp"

namespace backplane::core::layers {

// Returns a checked copy of a descriptor; refuses one that breaks a rule. `attributes` receives the
// attributes of a known operator.
bp_op_desc check_descriptor(const Call& call, const bp_op_desc* given, unsigned char* attributes);

// Refuses unless `desc` equals the plan's descriptor, or is in its class if the plan serves any
// size. Staged operands may differ as the ABI says.
void check_same_plan(const Call& call, const CheckedPlan& plan, const bp_op_desc& desc, bool staged);

}  // namespace backplane::core::layers
