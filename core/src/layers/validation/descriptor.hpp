// SPDX-License-Identifier: Apache-2.0
// The layer `validation`: checks of descriptors.
#pragma once

#include "layers/validation/call.hpp"

namespace backplane::core::layers {

// A descriptor as this library knows it; refuses one that breaks a rule. `attributes` receives those of a known operator.
bp_op_desc check_descriptor(const Call& call, const bp_op_desc* given, unsigned char* attributes);

// Whether `desc` is the plan's own, or of its class if it serves any size; refuses otherwise. Of staged operands it may differ
// as the ABI says.
void check_same_plan(const Call& call, const CheckedPlan& plan, const bp_op_desc& desc, bool staged);

}  // namespace backplane::core::layers
