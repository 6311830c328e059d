// SPDX-License-Identifier: Apache-2.0
// The class of executions that a plan serves, for host devices and queue devices: the operands,
// whether they are dense or staged, and their sizes. Also checks that an execution is of its plan's
// class.
#pragma once

#include <backplane/kit/check.hpp>
#include <backplane/rules/plan_class.hpp>
#include <vector>

// Whether plan_execute repeats core's checks. All sources of a plugin must use the same value.
#ifndef BACKPLANE_KIT_CHECKED
#ifdef NDEBUG
#define BACKPLANE_KIT_CHECKED 0
#else
#define BACKPLANE_KIT_CHECKED 1
#endif
#endif

namespace backplane::kit {

// The properties of an operand on which an any-size plan relies. They are the same in every
// execution of a BP_PLAN_ANY_SIZE plan.
struct Operand {
  uint16_t dtype = 0;  // 0 means absent
  uint16_t flags = 0;
  uint8_t rank = 0;
  bool dense = false;    // dense row-major, as given or after staging
  bool staged = false;   // core stages the operand, aligns it and chooses its strides
  uint64_t classes = 0;  // result of rules::view_class; excludes strides if staged
};

struct PlanForm {
  const OpInfo* op = nullptr;
  KernelDtypes dtypes;
  uint64_t flags = 0;  // BP_OP_FLAG_*
  uint32_t input_count = 0;
  uint32_t output_count = 0;
  uint32_t stage_inputs = 0;
  uint32_t stage_outputs = 0;
  uint64_t workspace_bytes = 0;
  // If true, workspace_bytes is valid only for the sizes of plan_create, and plan_workspace returns
  // the bytes for other sizes.
  bool sized_workspace = false;
  Attributes attributes{};
  std::array<Operand, rules::kMaxOperands> operands{};  // inputs, then outputs
  // The operands of a plan for one size, inputs first. Empty in an any-size plan.
  std::vector<bp_tensor_desc> exact;
  // The packed inputs with their indices. They are the same in every execution.
  std::vector<std::pair<uint32_t, bp_tensor_desc>> packed;
};

// A plan's requests to core. When `prepare` is called, the masks stage_inputs and stage_outputs
// already contain the operands that core must stage for this kernel. `prepare` may add operands.
struct PlanNeeds {
  bool any_size = true;        // the plan serves the descriptor's whole class
  bool specializable = false;  // sets BP_PLAN_SPECIALIZABLE; requires any_size
  uint32_t stage_inputs = 0;   // mask of the inputs that core stages
  uint32_t stage_outputs = 0;
  // Size of the workspace in bytes. In an any-size plan this size suffices for every size of the
  // operands, unless sized_workspace is set.
  uint64_t workspace_bytes = 0;
  bool sized_workspace = false;  // sets BP_PLAN_SIZED_WORKSPACE; requires plan_workspace
};

// The location of a buffer as the device's kernels see it. The address is null if the device's
// memory has only handles.
struct Span {
  std::byte* address = nullptr;
  uint64_t bytes = 0;
};

// Returns `view` with dense strides, the form in which core describes a staged operand.
inline bp_tensor_desc dense_like(bp_tensor_desc view) {
  rules::make_dense(view);
  return view;
}

namespace detail {

// The part of a view's class that is the same in every execution of a plan. This part excludes the
// strides of a staged operand, because core chooses these strides.
inline uint64_t kept_class(const bp_tensor_desc& view, bool staged) {
  const uint64_t classes = rules::view_class(view);
  return staged ? classes & ~(rules::kClassStrides) : classes;
}

inline Operand make_operand(const bp_tensor_desc& view, bool staged) {
  Operand out;
  if (view.dtype == 0) return out;
  out.dtype = view.dtype;
  out.rank = view.rank;
  out.staged = staged;
  out.flags = staged ? uint16_t{0} : static_cast<uint16_t>(view.flags & ~BP_DESC_HINTS);
  out.dense = staged || ((view.flags & BP_DESC_IMMEDIATE) == 0 && rules::is_dense(view));
  out.classes = kept_class(staged ? dense_like(view) : view, staged);
  return out;
}

inline std::string role_text(const PlanForm& plan, uint32_t index) {
  return index < plan.input_count ? text("input ", index) : text("output ", index - plan.input_count);
}

// Returns the error for an execution that is not of the plan's class.
[[gnu::cold, gnu::noinline]] inline Status not_planned(const PlanForm& plan, uint32_t index,
                                                       const bp_tensor_desc& view) {
  const Operand& planned = plan.operands[index];
  const std::string who = text(plan.op->name, ": ", role_text(plan, index));
  constexpr const char* kAdvice = "; make a plan for this one";
  if (view.dtype != planned.dtype) {
    const auto name = [](uint32_t dtype) { return dtype == 0 ? "absent" : dtype_name(dtype); };
    return invalid_argument(who, " is ", name(view.dtype), ", but the plan is for ", name(planned.dtype), kAdvice);
  }
  if (view.rank != planned.rank) {
    return invalid_argument(who, " has rank ", uint32_t{view.rank}, ", but the plan is for rank ",
                            uint32_t{planned.rank}, kAdvice);
  }
  if ((view.flags & ~BP_DESC_HINTS) != planned.flags) {
    return invalid_argument(who, " has the flags ", view.flags, ", but the plan is for flags ", planned.flags,
                            planned.staged ? "; a staged operand cannot be an immediate" : kAdvice);
  }
  return invalid_argument(who, " has shape ", shape_text(view), " and strides [",
                          rules::list_text({view.strides, view.rank}), "], which are not of the plan's class",
                          planned.dense ? ": it is for dense operands" : "", kAdvice);
}

// Checks that an operand of an execution is of the plan's class and within its buffer.
inline Status check_operand(const PlanForm& plan, uint32_t index, const bp_tensor_desc& desc, const bp_operand& operand,
                            const Span& span) {
  const Operand& planned = plan.operands[index];
  if (desc.dtype != planned.dtype) return not_planned(plan, index, desc);
  if (desc.dtype == 0) return {};
  if (desc.rank != planned.rank || (desc.flags & ~BP_DESC_HINTS) != planned.flags) {
    return not_planned(plan, index, desc);
  }
  const bool negative = std::any_of(desc.shape, desc.shape + desc.rank, [](int64_t extent) { return extent < 0; });
  if (negative || kept_class(desc, planned.staged) != planned.classes) return not_planned(plan, index, desc);
  const auto size = static_cast<int64_t>(dtype_bytes(desc.dtype));
  rules::Extent extent{};
  constexpr int64_t kFar = int64_t{1} << 61;  // well below the limit of 64 bits
  if (rules::element_count(desc) < 0 || !rules::extent_of(desc, static_cast<uint32_t>(size), &extent) ||
      extent.lo < -kFar || extent.hi > kFar) {
    return invalid_argument(plan.op->name, ": ", role_text(plan, index), " exceeds the address space");
  }
  if (extent.hi == 0 || (desc.flags & BP_DESC_IMMEDIATE) != 0) return {};
  const auto offset = static_cast<int64_t>(operand.offset);
  const char* name = plan.op->name;
  if (operand.buffer == nullptr) return invalid_argument(name, ": ", role_text(plan, index), " has no buffer");
  if (operand.offset > span.bytes || offset + extent.lo < 0 || static_cast<uint64_t>(offset + extent.hi) > span.bytes) {
    return invalid_argument(name, ": ", role_text(plan, index), " reaches bytes ", offset + extent.lo, " to ",
                            offset + extent.hi, " of a buffer of ", span.bytes);
  }
  if ((reinterpret_cast<uintptr_t>(span.address) + operand.offset) %
          rules::natural_alignment(static_cast<uint32_t>(size)) !=
      0) {
    return invalid_argument(name, ": ", role_text(plan, index), " begins at byte ", offset,
                            ", which is not aligned for ", dtype_name(desc.dtype));
  }
  return {};
}

// Returns whether both views have the same elements at the same offsets. A stride matters only if
// the extent of its dimension exceeds 1.
inline bool same_layout(const bp_tensor_desc& a, const bp_tensor_desc& b) {
  if (a.rank != b.rank || a.dtype != b.dtype) return false;
  for (uint32_t i = 0; i < a.rank; ++i) {
    if (a.shape[i] != b.shape[i] || (a.shape[i] > 1 && a.strides[i] != b.strides[i])) return false;
  }
  return true;
}

template <class SpanOf>
Status check_scalars(const PlanForm& plan, const bp_op_desc& desc, const bp_operand* scalars, const SpanOf& span_of) {
  const OpInfo& op = *plan.op;
  const uint64_t bytes = dtype_bytes(rules::scalar_dtype(op, desc));
  const uint32_t count = std::min(desc.scalar_count, op.scalars_max);
  if (count != 0 && scalars == nullptr) return invalid_argument(op.name, ": the array of scalars is null");
  const bool on_device = (plan.flags & BP_OP_FLAG_DEVICE_SCALARS) != 0;
  for (uint32_t i = 0; i < count; ++i) {
    if ((scalars[i].buffer != nullptr) != on_device) {
      return invalid_argument(op.name, ": scalar ", i,
                              on_device ? " has no buffer, which the flag DEVICE_SCALARS requires"
                                        : " is in a buffer, which requires the flag DEVICE_SCALARS");
    }
    if (!on_device) continue;
    const Span span = span_of(scalars[i].buffer);
    if (span.bytes < bytes || scalars[i].offset > span.bytes - bytes) {
      return invalid_argument(op.name, ": scalar ", i, " at byte ", scalars[i].offset, " reaches past its buffer of ",
                              span.bytes);
    }
    if ((reinterpret_cast<uintptr_t>(span.address) + scalars[i].offset) % bytes != 0) {
      return invalid_argument(op.name, ": scalar ", i, " begins at byte ", scalars[i].offset,
                              ", which is not at its natural alignment of ", bytes);
    }
  }
  return {};
}

// Reads an input struct of an execution. Unlike other slots, plan_execute never returns UNSUPPORTED, so an unknown
// field that is not zero is INVALID_ARGUMENT.
template <class T>
Status read_of_execution(const void* in, uint32_t min_size, const char* name, T& out) {
  Status status = read_input(in, min_size, name, out);
  return status.code() == BP_UNSUPPORTED ? Status(BP_INVALID_ARGUMENT, status.message()) : status;
}

// Checks an execution against its plan: class, bounds, alignment, counts, scalars, workspace. Returns OK or
// INVALID_ARGUMENT.
template <class SpanOf>
Status check_execution(const PlanForm& plan, const bp_execution* given, const SpanOf& span_of) {
  bp_execution execution;
  bp_op_desc desc;
  Status status = read_of_execution(given, BP_EXECUTION_MIN_SIZE, "bp_execution", execution);
  if (!status.ok()) return status;
  status = read_of_execution(execution.desc, BP_OP_DESC_MIN_SIZE, "bp_op_desc", desc);
  if (!status.ok()) return status;
  const OpInfo& op = *plan.op;
  const auto counts = [](const bp_tensor_desc* views, uint32_t count, uint32_t planned) {
    return count == planned ||
           (count > planned && count <= BP_MAX_OPERANDS && views != nullptr && rules::trimmed(views, count) <= planned);
  };
  if (desc.op != op.id || !counts(desc.inputs, desc.input_count, plan.input_count) ||
      !counts(desc.outputs, desc.output_count, plan.output_count)) {
    return invalid_argument(op.name, ": the execution's descriptor is not of the plan's class");
  }
  desc.input_count = plan.input_count;
  desc.output_count = plan.output_count;
  const uint32_t count = plan.input_count + plan.output_count;
  if (desc.outputs == nullptr || execution.outputs == nullptr ||
      (plan.input_count != 0 && (desc.inputs == nullptr || execution.inputs == nullptr))) {
    return invalid_argument(op.name, ": the array of views or of operands is null");
  }
  for (uint32_t i = 0; i < count; ++i) {
    const bool input = i < plan.input_count;
    const uint32_t index = input ? i : i - plan.input_count;
    const bp_operand& operand = (input ? execution.inputs : execution.outputs)[index];
    const bp_tensor_desc& view = (input ? desc.inputs : desc.outputs)[index];
    status = check_operand(plan, i, view, operand, operand.buffer == nullptr ? Span{} : span_of(operand.buffer));
    if (!status.ok()) return status;
    if (!plan.exact.empty() && !same_layout(view, plan.exact[i])) {
      return invalid_argument(op.name, ": ", role_text(plan, i), " is ", shape_text(view), ", and the plan is for ",
                              shape_text(plan.exact[i]), " and one layout only; make a plan for this one");
    }
  }
  for (const auto& [index, view] : plan.packed) {
    if (!rules::same_elements(desc.inputs[index], view)) return not_planned(plan, index, desc.inputs[index]);
  }
  // If the plan is for one size, its shapes were checked when the plan was created.
  if (plan.exact.empty()) {
    try {
      rules::check_shapes(op, desc, plan.attributes.bytes);
    } catch (const rules::Violation& violation) {
      return invalid_argument(op.name, ": ", violation.what());
    }
  }
  if (status = check_scalars(plan, desc, execution.scalars, span_of); !status.ok()) return status;
  if (plan.workspace_bytes == 0 || plan.sized_workspace) return {};
  const Span span = execution.workspace == nullptr ? Span{} : span_of(execution.workspace);
  if (execution.workspace_bytes < plan.workspace_bytes || execution.workspace_offset > span.bytes ||
      span.bytes - execution.workspace_offset < plan.workspace_bytes) {
    return invalid_argument(op.name, ": the workspace has ", execution.workspace_bytes, " bytes, but the plan needs ",
                            plan.workspace_bytes);
  }
  return {};
}

}  // namespace detail

// Returns a PlanNeeds whose masks contain the operands that core must stage. `dense` means that the kernel requires
// dense operands, so core stages other views and input immediates. Core also stages an input that an output aliases,
// unless the operator is elementwise. Only elementwise kernels read each element before they overwrite it.
inline PlanNeeds common_needs(const CheckedDesc& checked, bool dense) {
  const bp_op_desc& desc = checked.desc;
  PlanNeeds needs;
  for (uint32_t i = 0; dense && i < desc.input_count; ++i) {
    if (desc.inputs[i].dtype == 0 || rules::is_packed(desc.inputs[i])) continue;
    if (!rules::is_dense(desc.inputs[i]) || (desc.inputs[i].flags & BP_DESC_IMMEDIATE)) needs.stage_inputs |= 1u << i;
  }
  for (uint32_t i = 0; i < desc.output_count; ++i) {
    if (dense && desc.outputs[i].dtype != 0 && !rules::is_dense(desc.outputs[i])) needs.stage_outputs |= 1u << i;
    const uint32_t alias = desc.outputs[i].alias;
    if (alias != 0 && checked.op->shape_rule != BP_SHAPE_ELEMENTWISE) needs.stage_inputs |= 1u << (alias - 1);
  }
  return needs;
}

// Fills `form` and `info` for a plan with these needs. Returns UNSUPPORTED if the descriptor
// requests a plan for one size but `needs` sets any_size.
inline Status make_form(const CheckedDesc& checked, const PlanNeeds& needs, PlanForm& form, bp_plan_info& info) {
  const bp_op_desc& desc = checked.desc;
  if ((desc.flags & BP_OP_FLAG_SPECIALIZE) != 0 && needs.any_size) {
    return unsupported(checked.op->name,
                       ": a plan for one size would not be faster than the any-size plan; use the any-size plan")
        .with_op(checked.desc.op);
  }
  form.op = checked.op;
  form.dtypes = checked.dtypes;
  form.flags = desc.flags;
  form.input_count = desc.input_count;
  form.output_count = desc.output_count;
  form.stage_inputs = needs.stage_inputs;
  form.stage_outputs = needs.stage_outputs;
  form.workspace_bytes = needs.workspace_bytes;
  form.sized_workspace = needs.any_size && needs.sized_workspace;
  std::memcpy(form.attributes.bytes, checked.attributes.bytes, checked.op->attributes->bytes);
  for (uint32_t i = 0; i < desc.input_count + desc.output_count; ++i) {
    const bool input = i < desc.input_count;
    const uint32_t index = input ? i : i - desc.input_count;
    const bp_tensor_desc& view = (input ? desc.inputs : desc.outputs)[index];
    const bool staged = ((input ? form.stage_inputs : form.stage_outputs) >> index & 1u) != 0;
    form.operands[i] = detail::make_operand(view, staged);
    if (!needs.any_size) form.exact.push_back(staged ? dense_like(view) : view);
    if (rules::is_packed(view)) form.packed.emplace_back(index, view);
  }
  info.flags = 0;
  if (needs.any_size) info.flags |= BP_PLAN_ANY_SIZE;
  if (needs.any_size && needs.specializable) info.flags |= BP_PLAN_SPECIALIZABLE;
  if (form.sized_workspace) info.flags |= BP_PLAN_SIZED_WORKSPACE;
  info.stage_inputs = form.stage_inputs;
  info.stage_outputs = form.stage_outputs;
  info.workspace_bytes = form.workspace_bytes;
  return {};
}

}  // namespace backplane::kit
