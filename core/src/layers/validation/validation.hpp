// SPDX-License-Identifier: Apache-2.0
// The slots of the layer `validation`.
#pragma once

#include "layers/validation/call.hpp"

namespace bp::layers {

void splice_memory(CheckedPlugin& plugin);  // memory, buffers, copies, bp.import
void splice_order(CheckedPlugin& plugin);   // streams and events
void splice_plans(CheckedPlugin& plugin);

// The buffers are in use until the call ends, and there is room for use_buffers to note it. The device's mutex is held.
void occupy_buffers(Call& call, const std::vector<CheckedBuffer*>& buffers);
// Work of `stream` uses the occupied buffers from now on: called when the plugin accepted it, so that it needs no memory. The
// device's mutex is held.
void use_buffers(Call& call, const CheckedStream& stream, const std::vector<CheckedBuffer*>& buffers) noexcept;

// A descriptor as this library knows it; refuses one that breaks a rule. `attributes` receives those of a known operator.
bp_op_desc check_descriptor(const Call& call, const bp_op_desc* given, unsigned char* attributes);

// Everything that an execution must keep to beside its descriptor; `workspace` is what the plan needs. The buffers that it uses
// are occupied and returned. The device's mutex is held.
std::vector<CheckedBuffer*> check_execution(Call& call, const bp_execution& execution, const bp_op_desc& desc,
                                            uint64_t workspace);

// Whether `desc` is the plan's own, or of its class if it serves any size; refuses otherwise. Of staged operands it may differ
// as the ABI says.
void check_same_plan(const Call& call, const CheckedPlan& plan, const bp_op_desc& desc, bool staged);

}  // namespace bp::layers
