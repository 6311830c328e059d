// SPDX-License-Identifier: Apache-2.0
// The layer `validation`: checks operator descriptors, and compares an execution's descriptor with
// its plan's descriptor.
#include "layers/validation/descriptor.hpp"

#include <algorithm>
#include <cstring>

#include "base/op_table.hpp"
#include "base/strided_view.hpp"
#include "dispatch/validate.hpp"

namespace backplane::core::layers {

namespace {

bool same_bytes(const bp_tensor_desc& a, const bp_tensor_desc& b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

// Returns the flags of the view except the hints. Hints may differ between executions.
uint32_t binding_flags(const bp_tensor_desc& view) { return view.flags & ~BP_DESC_HINTS; }

// Checks a view independently of its operator.
void check_view(const Call& call, const char* role, uint32_t index, const bp_tensor_desc& view, bool is_input) {
  if (view.rank > BP_MAX_RANK) {
    call.refuse(rule::kOpRules, "{} {} has rank {}; the most is {}", role, index, view.rank, BP_MAX_RANK);
  }
  for (uint32_t d = view.rank; d < BP_MAX_RANK; ++d) {
    if (view.shape[d] != 0 || view.strides[d] != 0) {
      call.refuse(rule::kViewTail, "{} {} of rank {} has shape {} and stride {} at {}; zero them", role, index,
                  view.rank, view.shape[d], view.strides[d], d);
    }
  }
  if ((view.flags & ~(BP_DESC_IMMEDIATE | BP_DESC_PACKED | BP_DESC_HINTS)) != 0) {
    call.refuse(rule::kUnknownValue, "{} {} has flags {:#x}; the known flags are BP_DESC_IMMEDIATE and BP_DESC_PACKED",
                role, index, view.flags);
  }
  if (view.alignment_log2 > BP_MAX_ALIGNMENT_LOG2) {
    call.refuse(rule::kViewAlignment, "{} {} states 2^{} bytes; state at most 2^{}", role, index, view.alignment_log2,
                BP_MAX_ALIGNMENT_LOG2);
  }
  if ((view.flags & BP_DESC_IMMEDIATE) != 0) {
    const bool spread = std::any_of(view.strides, view.strides + view.rank, [](int64_t stride) { return stride != 0; });
    if (!is_input || spread || dtype_bytes(view.dtype) > sizeof(uint64_t)) {
      call.refuse(rule::kViewImmediate, "{} {} of {} is an immediate{}; make it an input with strides 0", role, index,
                  dtype_name(view.dtype), spread ? " with strides" : "");
    }
  }
}

void check_alias(const Call& call, uint32_t index, const bp_tensor_desc& view, const bp_op_desc& desc) {
  if (view.alias == 0) return;
  const bp_tensor_desc* input = view.alias <= desc.input_count ? &desc.inputs[view.alias - 1] : nullptr;
  if (input == nullptr || binding_flags(*input) != 0 || !same_elements(*input, view)) {
    call.refuse(rule::kViewAlias,
                "output {} names input {} as identical, of {} inputs; name one with the same dtype, shape and strides",
                index, view.alias - 1, desc.input_count);
  }
}

// Returns whether the view has the alignment, flags and strides of a staged operand.
bool is_staged(const bp_tensor_desc& view, uint8_t full_alignment_log2) {
  return binding_flags(view) == 0 && view.alias == 0 && view.alignment_log2 == full_alignment_log2 && is_dense(view);
}

// Returns whether both views have the same dtype, rank and shape. If `any_size` is true, two
// extents match if both are 0, both are 1, or both are greater than 1.
bool same_shape(const bp_tensor_desc& a, const bp_tensor_desc& b, bool any_size) {
  if (a.dtype != b.dtype || a.rank != b.rank) return false;
  for (uint32_t d = 0; d < a.rank; ++d) {
    if (any_size ? std::min<int64_t>(a.shape[d], 2) != std::min<int64_t>(b.shape[d], 2) : a.shape[d] != b.shape[d]) {
      return false;
    }
  }
  return true;
}

}  // namespace

bp_op_desc check_descriptor(const Call& call, const bp_op_desc* given, unsigned char* attributes) {
  bp_op_desc desc = call.input(given, BP_OP_DESC_MIN_SIZE, "bp_op_desc");
  if ((desc.flags & ~static_cast<uint64_t>(BP_OP_FLAGS_ALL)) != 0) {
    call.refuse(rule::kUnknownValue, "bp_op_desc has flags {:#x}; known are {:#x}", desc.flags, BP_OP_FLAGS_ALL);
  }
  if (desc.input_count > BP_MAX_OPERANDS || desc.output_count > BP_MAX_OPERANDS) {
    call.refuse(rule::kOpRules, "{} inputs and {} outputs are given; the most is {}", desc.input_count,
                desc.output_count, BP_MAX_OPERANDS);
  }
  if (desc.input_count != 0) call.need(desc.inputs, "bp_op_desc.inputs");
  if (desc.output_count != 0) call.need(desc.outputs, "bp_op_desc.outputs");
  for (uint32_t i = 0; i < desc.input_count; ++i) {
    check_view(call, "input", i, desc.inputs[i], true);
    if (desc.inputs[i].alias != 0) call.refuse(rule::kViewAlias, "input {} has an alias; only outputs have one", i);
  }
  for (uint32_t i = 0; i < desc.output_count; ++i) {
    check_view(call, "output", i, desc.outputs[i], false);
    check_alias(call, i, desc.outputs[i], desc);
  }
  rules::trim_operands(desc);
  const OpRow* row = op_row(desc.op);
  if (row == nullptr) return desc;  // the plugin checks vendor-specific and unknown operators
  call.under(rule::kOpRules, [&] {
    read_attributes(*row, desc.attributes, attributes);
    desc.attributes = row->attributes->bytes == 0 ? nullptr : attributes;
    validate(*row, desc);
  });
  return desc;
}

void check_same_plan(const Call& call, const CheckedPlan& plan, const bp_op_desc& desc, bool staged) {
  const bp_op_desc& own = plan.desc;
  const auto* attributes = static_cast<const unsigned char*>(desc.attributes);
  const bool same_attributes =
      (attributes == nullptr) == plan.attributes.empty() &&
      (attributes == nullptr || std::memcmp(attributes, plan.attributes.data(), plan.attributes.size()) == 0);
  if (desc.op != own.op || desc.flags != own.flags || desc.input_count != own.input_count ||
      desc.output_count != own.output_count || desc.scalar_count != own.scalar_count || !same_attributes) {
    call.refuse(
        rule::kPlanIdentity,
        "operator {} with {} inputs, {} outputs, flags {:#x}{}; the plan was made for operator {} with {}, {}, {:#x}: "
        "use the plan's descriptor",
        desc.op, desc.input_count, desc.output_count, desc.flags, same_attributes ? "" : " and other attributes",
        own.op, own.input_count, own.output_count, own.flags);
  }
  const bool any_size = (plan.info.flags & BP_PLAN_ANY_SIZE) != 0;
  const uint8_t full_alignment_log2 = full_alignment_log2_of(call.device().info.alignment);
  const uint32_t stage_inputs = staged ? plan.info.stage_inputs : 0;
  const uint32_t stage_outputs = staged ? plan.info.stage_outputs : 0;
  for (uint32_t i = 0; i < desc.input_count + desc.output_count; ++i) {
    const bool is_input = i < desc.input_count;
    const uint32_t index = is_input ? i : i - desc.input_count;
    const bp_tensor_desc& view = is_input ? desc.inputs[index] : desc.outputs[index];
    bp_tensor_desc expected = plan.views[i];
    if (view.dtype == 0 && expected.dtype == 0) continue;
    const char* role = is_input ? "input" : "output";
    if (((is_input ? stage_inputs : stage_outputs) >> index & 1u) != 0) {
      if (!is_staged(view, full_alignment_log2) || !same_shape(view, expected, any_size)) {
        call.refuse(rule::kStagedOperand,
                    "{} {} is staged by the plan and is not dense with alignment 2^{}, no flags and no alias; stage it",
                    role, index, full_alignment_log2);
      }
      continue;
    }
    // If the plan's aliased input is staged, the output may alias a later identical input, or none.
    // check_execution checks the addresses.
    const auto moved = [&](uint32_t alias) { return (stage_inputs >> (alias - 1) & 1u) != 0; };
    if (expected.alias != 0 && moved(expected.alias)) {
      expected.alias = view.alias > expected.alias && !moved(view.alias) ? view.alias : uint16_t{0};
    }
    expected.flags = static_cast<uint16_t>(binding_flags(expected) | (view.flags & BP_DESC_HINTS));
    if (same_bytes(view, expected)) continue;
    if (!any_size || view.dtype != expected.dtype || view.rank != expected.rank || view.flags != expected.flags ||
        view.alignment_log2 != expected.alignment_log2 || view.alias != expected.alias ||
        !rules::same_class(view, expected)) {
      call.refuse(rule::kPlanIdentity, "{} {} differs from the plan's{}; make a plan for it", role, index,
                  any_size ? " in more than its sizes" : ", which serves one descriptor");
    }
  }
}

}  // namespace backplane::core::layers
