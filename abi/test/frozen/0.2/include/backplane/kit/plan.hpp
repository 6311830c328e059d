// SPDX-License-Identifier: Apache-2.0
// Plans: made by looking a kernel up, and serving every size unless the kernel is prepared for one; bound to operands at each execution.
#pragma once

#include <backplane/kit/kernels.hpp>
#include <backplane/rules/plan_class.hpp>

namespace backplane::kit {

// What a plan for any size counts on of an operand: what BP_PLAN_ANY_SIZE says that each execution keeps.
struct Operand {
  uint16_t dtype = 0;  // 0: absent
  uint16_t flags = 0;
  uint8_t rank = 0;
  bool dense = false;    // packed row-major, by itself or staged
  bool staged = false;   // by core: fully aligned too, and in strides of its own
  uint64_t classes = 0;  // rules::view_class, of a staged one without strides
};

struct Plan {
  const OpInfo* op = nullptr;
  KernelSpec kernel;
  KernelDtypes dtypes;
  uint64_t flags = 0;
  uint32_t input_count = 0;
  uint32_t output_count = 0;
  uint32_t stage_inputs = 0;
  uint32_t stage_outputs = 0;
  Attributes attributes{};
  std::shared_ptr<const void> state;
  std::array<Operand, rules::kMaxOperands> operands{};  // inputs first
  std::vector<bp_tensor_desc> exact;  // operands of a plan that serves one size, inputs first; empty: any size
};

// Where a buffer lies, as the kernels of the device see it.
struct Span {
  std::byte* address = nullptr;
  uint64_t bytes = 0;
};

// `view` as core describes it once it is staged: packed.
inline bp_tensor_desc dense_like(bp_tensor_desc view) {
  rules::make_dense(view);
  return view;
}

namespace detail {

// What of a view's class an execution keeps. Core gives a staged operand strides of its own.
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

inline std::string role_text(const Plan& plan, uint32_t place) {
  return place < plan.input_count ? text("input ", place) : text("output ", place - plan.input_count);
}

// An execution that is not of the plan's class.
[[gnu::cold, gnu::noinline]] inline Status not_planned(const Plan& plan, uint32_t place, const bp_tensor_desc& view) {
  const Operand& planned = plan.operands[place];
  const std::string who = text(plan.op->name, ": ", role_text(plan, place));
  constexpr const char* kAdvice = "; make a plan for this one";
  if (view.dtype != planned.dtype) {
    const auto name = [](uint32_t dtype) { return dtype == 0 ? "absent" : dtype_name(dtype); };
    return invalid_argument(who, " is ", name(view.dtype), ", and of the plan ", name(planned.dtype), kAdvice);
  }
  if (view.rank != planned.rank) {
    return invalid_argument(who, " has rank ", uint32_t{view.rank}, ", and of the plan ", uint32_t{planned.rank},
                            kAdvice);
  }
  if ((view.flags & ~BP_DESC_HINTS) != planned.flags) {
    return invalid_argument(who, " has the flags ", view.flags, ", and of the plan ", planned.flags,
                            planned.staged ? "; what is staged is no immediate" : kAdvice);
  }
  return invalid_argument(who, " has shape ", shape_text(view), " and strides [",
                          rules::list_text({view.strides, view.rank}), "], which are not of the plan's class",
                          planned.dense ? ": it is for packed operands" : "", kAdvice);
}

inline Status bind_view(const Plan& plan, uint32_t place, const bp_tensor_desc& desc, const bp_operand& operand,
                        const Span& span, View& view) {
  const Operand& planned = plan.operands[place];
  if (desc.dtype != planned.dtype) return not_planned(plan, place, desc);
  view.dtype = desc.dtype;
  view.data = nullptr;
  if (desc.dtype == 0) {
    view.rank = 0;
    return {};
  }
  if (desc.rank != planned.rank || (desc.flags & ~BP_DESC_HINTS) != planned.flags)
    return not_planned(plan, place, desc);
  view.rank = desc.rank;
  int64_t low = 0, high = 0;
  bool empty = false, too_far = false;
  for (int i = static_cast<int>(desc.rank) - 1; i >= 0; --i) {
    const int64_t extent = desc.shape[i], stride = desc.strides[i];
    if (extent < 0) return not_planned(plan, place, desc);
    view.shape[i] = extent;
    view.strides[i] = stride;
    if (extent > 1) {
      int64_t reach = 0;
      if (__builtin_mul_overflow(extent - 1, stride, &reach)) too_far = true;
      int64_t& side = reach < 0 ? low : high;
      if (__builtin_add_overflow(side, reach, &side)) too_far = true;
    } else if (extent == 0) {
      empty = true;
    }
  }
  if (kept_class(desc, planned.staged) != planned.classes) return not_planned(plan, place, desc);
  if (empty) return {};
  if ((desc.flags & BP_DESC_IMMEDIATE) != 0) {
    view.immediate = operand.immediate;
    view.data = reinterpret_cast<std::byte*>(&view.immediate);
    return {};
  }
  const OpInfo& op = *plan.op;
  const auto size = static_cast<int64_t>(dtype_bytes(desc.dtype));
  const auto offset = static_cast<int64_t>(operand.offset);
  if (operand.buffer == nullptr) return invalid_argument(op.name, ": ", role_text(plan, place), " has no buffer");
  constexpr int64_t kFar = int64_t{1} << 58;  // in bytes still far below what 64 bits hold
  if (too_far || low < -kFar || high > kFar) {
    return invalid_argument(op.name, ": ", role_text(plan, place), " reaches further than memory does");
  }
  if (operand.offset > span.bytes || offset + low * size < 0 ||
      static_cast<uint64_t>(offset + (high + 1) * size) > span.bytes) {
    return invalid_argument(op.name, ": ", role_text(plan, place), " reaches bytes ", offset + low * size, " to ",
                            offset + (high + 1) * size, " of a buffer of ", span.bytes);
  }
  view.data = span.address + offset;
  if (reinterpret_cast<uintptr_t>(view.data) % rules::natural_alignment(static_cast<uint32_t>(size)) != 0) {
    return invalid_argument(op.name, ": ", role_text(plan, place), " begins at byte ", offset,
                            ", which is not aligned for ", dtype_name(desc.dtype));
  }
  return {};
}

// The same elements in the same places; a stride counts only where the extent is above 1.
inline bool same_layout(const bp_tensor_desc& a, const bp_tensor_desc& b) {
  if (a.rank != b.rank || a.dtype != b.dtype) return false;
  for (uint32_t i = 0; i < a.rank; ++i) {
    if (a.shape[i] != b.shape[i] || (a.shape[i] > 1 && a.strides[i] != b.strides[i])) return false;
  }
  return true;
}

// Scalars that the caller lacks are zero.
template <class SpanOf>
Status bind_scalars(const Plan& plan, const bp_op_desc& desc, const bp_operand* scalars, const SpanOf& span_of,
                    Call& call) {
  const OpInfo& op = *plan.op;
  const uint64_t bytes = dtype_bytes(rules::scalar_dtype(op, desc));
  const uint32_t count = std::min(desc.scalar_count, op.scalars_max);
  if (count != 0 && scalars == nullptr) return invalid_argument(op.name, ": the array of scalars is null");
  const bool on_device = (plan.flags & BP_OP_FLAG_DEVICE_SCALARS) != 0;
  for (uint32_t i = 0; i < op.scalars_max; ++i) {
    call.scalar_bits[i] = i < count ? scalars[i].immediate : 0;
    call.scalar_at[i] = nullptr;
    if (i >= count || (scalars[i].buffer == nullptr && !on_device)) continue;
    if ((scalars[i].buffer != nullptr) != on_device) {
      return invalid_argument(op.name, ": scalar ", i,
                              on_device ? " has no buffer, though DEVICE_SCALARS asks for one"
                                        : " lies in a buffer, which needs the flag DEVICE_SCALARS");
    }
    const Span span = span_of(scalars[i].buffer);
    if (span.bytes < bytes || scalars[i].offset > span.bytes - bytes) {
      return invalid_argument(op.name, ": scalar ", i, " at byte ", scalars[i].offset, " reaches past its buffer of ",
                              span.bytes);
    }
    call.scalar_at[i] = span.address + scalars[i].offset;
    if (reinterpret_cast<uintptr_t>(call.scalar_at[i]) % bytes != 0) {
      return invalid_argument(op.name, ": scalar ", i, " begins at byte ", scalars[i].offset,
                              ", which is not at its natural alignment of ", bytes);
    }
  }
  return {};
}

}  // namespace detail

// Answers "can you?" and fills `plan` and `info`.
inline Status make_plan(const Kernels& kernels, const bp_op_desc* given, Plan& plan, bp_plan_info& info) {
  CheckedDesc checked;
  Status status = check_desc(given, checked);
  if (!status.ok()) return std::move(status).with_op(checked.desc.op);
  const KernelSpec* spec = kernels.find(checked.desc.op, checked.dtypes);
  if (spec == nullptr) return no_kernel(checked).with_op(checked.desc.op);

  const bp_op_desc& desc = checked.desc;
  plan = Plan{};
  plan.op = checked.op;
  plan.kernel = *spec;
  plan.dtypes = checked.dtypes;
  plan.flags = desc.flags;
  plan.input_count = desc.input_count;
  plan.output_count = desc.output_count;
  plan.state = spec->state;
  std::memcpy(plan.attributes.bytes, checked.attributes.bytes, checked.op->attributes->bytes);
  for (uint32_t i = 0; spec->dense && i < desc.input_count; ++i) {
    if (desc.inputs[i].dtype == 0) continue;
    if (!rules::is_dense(desc.inputs[i]) || (desc.inputs[i].flags & BP_DESC_IMMEDIATE)) plan.stage_inputs |= 1u << i;
  }
  for (uint32_t i = 0; i < desc.output_count; ++i) {
    if (spec->dense && desc.outputs[i].dtype != 0 && !rules::is_dense(desc.outputs[i])) plan.stage_outputs |= 1u << i;
    // Only elementwise kernels read an element no later than they write it.
    const uint32_t alias = desc.outputs[i].alias;
    if (alias != 0 && checked.op->shape_rule != BP_SHAPE_ELEMENTWISE) plan.stage_inputs |= 1u << (alias - 1);
  }
  info.flags = BP_PLAN_ANY_SIZE;
  if (spec->prepare != nullptr) {
    Prepared prepared;
    prepared.stage_inputs = plan.stage_inputs;
    prepared.stage_outputs = plan.stage_outputs;
    status = spec->prepare(checked, prepared);
    if (!status.ok()) return std::move(status).with_op(checked.desc.op);
    if (prepared.run != nullptr) plan.kernel.run = prepared.run;
    plan.kernel.workspace_bytes = prepared.workspace_bytes;
    plan.stage_inputs = prepared.stage_inputs;
    plan.stage_outputs = prepared.stage_outputs;
    if (prepared.state != nullptr) plan.state = std::move(prepared.state);
    if (prepared.any_size && prepared.specializable) info.flags |= BP_PLAN_SPECIALIZABLE;
    if (!prepared.any_size) {
      info.flags = 0;
      plan.exact.assign(desc.inputs, desc.inputs + desc.input_count);
      plan.exact.insert(plan.exact.end(), desc.outputs, desc.outputs + desc.output_count);
      for (uint32_t i = 0; i < plan.exact.size(); ++i) {
        const bool input = i < desc.input_count;
        const uint32_t staged = input ? plan.stage_inputs >> i : plan.stage_outputs >> (i - desc.input_count);
        if ((staged & 1u) != 0) plan.exact[i] = dense_like(plan.exact[i]);
      }
    }
  }
  if ((desc.flags & BP_OP_FLAG_SPECIALIZE) != 0 && (info.flags & BP_PLAN_ANY_SIZE) != 0) {
    return unsupported(checked.op->name, ": no plan for one size is faster than the one for any size; use that")
        .with_op(checked.desc.op);
  }
  for (uint32_t i = 0; i < desc.input_count; ++i) {
    plan.operands[i] = detail::make_operand(desc.inputs[i], (plan.stage_inputs >> i & 1u) != 0);
  }
  for (uint32_t i = 0; i < desc.output_count; ++i) {
    plan.operands[desc.input_count + i] = detail::make_operand(desc.outputs[i], (plan.stage_outputs >> i & 1u) != 0);
  }
  info.stage_inputs = plan.stage_inputs;
  info.stage_outputs = plan.stage_outputs;
  info.workspace_bytes = plan.kernel.workspace_bytes;
  return {};
}

// Fills `call` from an execution. `span_of(bp_buffer*)` gives a buffer's Span.
template <class SpanOf>
Status bind_call(const Plan& plan, const bp_execution* given, const SpanOf& span_of, Call& call) {
  bp_execution execution;
  bp_op_desc desc;
  Status status = read_input(given, BP_EXECUTION_MIN_SIZE, "bp_execution", execution);
  if (!status.ok()) return status;
  status = read_input(execution.desc, BP_OP_DESC_MIN_SIZE, "bp_op_desc", desc);
  if (!status.ok()) return status;
  const OpInfo& op = *plan.op;
  const auto counts = [](const bp_tensor_desc* views, uint32_t count, uint32_t planned) {
    return count == planned || (count > planned && count <= BP_MAX_OPERANDS && views != nullptr &&
                                rules::trimmed(views, count) <= planned);
  };
  if (desc.op != op.id || !counts(desc.inputs, desc.input_count, plan.input_count) ||
      !counts(desc.outputs, desc.output_count, plan.output_count)) {
    return invalid_argument(op.name, ": the execution's descriptor is not of the plan's class");
  }
  const uint32_t count = plan.input_count + plan.output_count;
  if (desc.outputs == nullptr || execution.outputs == nullptr ||
      (plan.input_count != 0 && (desc.inputs == nullptr || execution.inputs == nullptr))) {
    return invalid_argument(op.name, ": the array of views or of operands is null");
  }
  if (call.views.size() < count) call.views.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    const bool input = i < plan.input_count;
    const uint32_t index = input ? i : i - plan.input_count;
    const bp_operand& operand = (input ? execution.inputs : execution.outputs)[index];
    const bp_tensor_desc& view = (input ? desc.inputs : desc.outputs)[index];
    const Span span = operand.buffer == nullptr ? Span{} : span_of(operand.buffer);
    status = detail::bind_view(plan, i, view, operand, span, call.views[i]);
    if (!status.ok()) return status;
    if (!plan.exact.empty() && !detail::same_layout(view, plan.exact[i])) {
      return invalid_argument(op.name, ": ", detail::role_text(plan, i), " is ", shape_text(view),
                              ", and the plan is for ", shape_text(plan.exact[i]),
                              " and one layout only; make a plan for this one");
    }
  }
  // An exact plan's shapes are those that were checked when it was made.
  if (plan.exact.empty()) {
    try {
      rules::check_shapes(op, desc, plan.attributes.bytes);
    } catch (const rules::Violation& violation) {
      return {violation.status(), text(op.name, ": ", violation.what())};
    }
  }
  call.op = &op;
  call.state = plan.state;
  call.inputs = {call.views.data(), plan.input_count};
  call.outputs = {call.views.data() + plan.input_count, plan.output_count};
  std::memcpy(call.attribute_bytes.bytes, plan.attributes.bytes, op.attributes->bytes);

  if (status = detail::bind_scalars(plan, desc, execution.scalars, span_of, call); !status.ok()) return status;

  call.workspace = nullptr;
  call.workspace_bytes = execution.workspace_bytes;
  if (plan.kernel.workspace_bytes != 0) {
    const Span span = execution.workspace == nullptr ? Span{} : span_of(execution.workspace);
    if (execution.workspace_bytes < plan.kernel.workspace_bytes || execution.workspace_offset > span.bytes ||
        span.bytes - execution.workspace_offset < plan.kernel.workspace_bytes) {
      return invalid_argument(op.name, ": the workspace has ", execution.workspace_bytes, " bytes, the plan needs ",
                              plan.kernel.workspace_bytes);
    }
    call.workspace = span.address + execution.workspace_offset;
  }
  return {};
}

}  // namespace backplane::kit
