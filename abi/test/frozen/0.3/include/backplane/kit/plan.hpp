// SPDX-License-Identifier: Apache-2.0
// Plans for host kernels. Plan creation selects a kernel. The plan serves every size, unless the
// kernel was prepared for one size. Each execution binds the plan to operands.
#pragma once

#include <backplane/kit/kernels.hpp>
#include <backplane/kit/plan_form.hpp>

namespace backplane::kit {

struct Plan : PlanForm {
  KernelSpec kernel;
  std::shared_ptr<const void> state;
};

namespace detail {

template <class SpanOf>
void bind_view(const bp_tensor_desc& desc, const bp_operand& operand, const SpanOf& span_of, View& view) {
  view.dtype = desc.dtype;
  view.rank = desc.dtype == 0 ? 0 : desc.rank;
  bool elements = desc.dtype != 0;
  for (uint32_t d = 0; d < view.rank; ++d) {
    view.shape[d] = desc.shape[d];
    view.strides[d] = desc.strides[d];
    elements &= desc.shape[d] != 0;
  }
  view.data = nullptr;
  view.is_immediate = (desc.flags & BP_DESC_IMMEDIATE) != 0;
  view.is_packed = rules::is_packed(desc);
  if (!elements) [[unlikely]]
    return;
  if (view.is_immediate) [[unlikely]] {
    view.immediate = operand.immediate;
    view.data = reinterpret_cast<std::byte*>(&view.immediate);
    return;
  }
  view.data = span_of(operand.buffer).address + operand.offset;
}

// Omitted scalars are zero.
template <class SpanOf>
void bind_scalars(const OpInfo& op, uint32_t given, const bp_operand* scalars, const SpanOf& span_of, Call& call) {
  for (uint32_t i = 0; i < op.scalars_max; ++i) {
    const bp_operand scalar = i < given ? scalars[i] : bp_operand{};
    call.scalar_bits[i] = scalar.immediate;
    call.scalar_at[i] = scalar.buffer == nullptr ? nullptr : span_of(scalar.buffer).address + scalar.offset;
  }
}

}  // namespace detail

// Returns UNSUPPORTED unless the kernel reads the layout of each packed input.
inline Status check_layouts(const KernelSpec& spec, const CheckedDesc& checked) {
  for (uint32_t i = 0; i < checked.desc.input_count; ++i) {
    const bp_tensor_desc& view = checked.desc.inputs[i];
    if (!rules::is_packed(view)) continue;
    if (spec.pack == nullptr) return packed_unread(checked, i);
    PreparedPack own;
    if (Status status = spec.pack(checked, i, own); !status.ok()) return std::move(status).with_op(checked.desc.op);
    const auto bytes = static_cast<uint64_t>(view.strides[0]), layout = static_cast<uint64_t>(view.strides[1]);
    if (bytes == own.bytes && layout == own.layout) continue;
    return unsupported(checked.op->name, ": input ", i, " is packed in layout ", rules::mask_text(layout), " of ",
                       bytes, " bytes, and this plan reads layout ", rules::mask_text(own.layout), " of ", own.bytes,
                       " bytes; pack the operand for this call")
        .with_op(checked.desc.op);
  }
  return {};
}

// Fills `plan` and `info`, or returns the reason why the plugin does not support the operator.
inline Status make_plan(const Kernels& kernels, const bp_op_desc* given, Plan& plan, bp_plan_info& info) {
  CheckedDesc checked;
  Status status = check_desc(given, checked, true);
  if (!status.ok()) return std::move(status).with_op(checked.desc.op);
  const KernelSpec* spec = kernels.find(checked.desc.op, checked.dtypes, checked.mixed);
  if (spec == nullptr) return no_kernel(kernels, checked).with_op(checked.desc.op);
  if (status = check_layouts(*spec, checked); !status.ok()) return status;

  plan = Plan{};
  plan.kernel = *spec;
  plan.state = spec->state;
  PlanNeeds needs = common_needs(checked, spec->dense);
  needs.workspace_bytes = spec->workspace_bytes;
  if (spec->prepare != nullptr) {
    Prepared prepared;
    prepared.stage_inputs = needs.stage_inputs;
    prepared.stage_outputs = needs.stage_outputs;
    status = spec->prepare(checked, prepared);
    if (!status.ok()) return std::move(status).with_op(checked.desc.op);
    if (prepared.run != nullptr) plan.kernel.run = prepared.run;
    if (prepared.state != nullptr) plan.state = std::move(prepared.state);
    needs = prepared;
  }
  return make_form(checked, needs, plan, info);
}

// The packing of one input, which pack_create prepared.
struct Pack {
  const OpInfo* op = nullptr;
  bp_tensor_desc view{};  // the plain view
  PreparedPack prepared;
};

// Fills `pack`, or returns the reason why the plugin does not pack the input. pack_table.hpp has checked
// that the input is constant and has elements.
inline Status make_pack(const Kernels& kernels, const CheckedDesc& checked, uint32_t input, Pack& pack) {
  const KernelSpec* spec = kernels.find(checked.desc.op, checked.dtypes, checked.mixed);
  if (spec == nullptr) return no_kernel(kernels, checked).with_op(checked.desc.op);
  if (spec->pack == nullptr) {
    return unsupported(checked.op->name, ": this plugin's ", checked.op->name, " on ", dtype_name(checked.dtypes.first),
                       " prefers plain operands; pass input ", input, " as it is")
        .with_op(checked.desc.op);
  }
  if (Status status = check_layouts(*spec, checked); !status.ok()) return status;
  pack.op = checked.op;
  pack.view = checked.desc.inputs[input];
  return spec->pack(checked, input, pack.prepared).with_op(checked.desc.op);
}

// Checks that the operands of a packing lie within their buffers and do not overlap, and fills
// `call` with them. `alignment` is the required alignment of the packed operand, in bytes.
inline Status bind_pack(const Pack& pack, uint64_t alignment, const Span& src, uint64_t src_offset, const Span& dst,
                        uint64_t dst_offset, Call& call) {
  const bp_tensor_desc& view = pack.view;
  rules::Extent extent{};
  (void)rules::extent_of(view, dtype_bytes(view.dtype), &extent);  // the descriptor was checked
  const uint64_t below = src_offset + static_cast<uint64_t>(extent.lo);
  const auto span = static_cast<uint64_t>(extent.hi - extent.lo);
  if (src_offset > src.bytes || static_cast<uint64_t>(-extent.lo) > src_offset || span > src.bytes - below) {
    return invalid_argument("pack_execute: the plain operand at ", src_offset, " reaches past its buffer of ",
                            src.bytes, " bytes");
  }
  const uint64_t bytes = pack.prepared.bytes;
  if (dst_offset > dst.bytes || bytes > dst.bytes - dst_offset) {
    return invalid_argument("pack_execute: ", bytes, " bytes at ", dst_offset, " reach past the buffer of ", dst.bytes,
                            " bytes; bp_pack_info.bytes states the size");
  }
  std::byte* const to = dst.address + dst_offset;
  if (reinterpret_cast<uintptr_t>(to) % alignment != 0) {
    return invalid_argument("pack_execute: the packed operand at ", dst_offset, " is not aligned to ", alignment,
                            " bytes");
  }
  std::byte* const from = src.address + below;
  if (to < from + span && from < to + bytes) {
    return invalid_argument("pack_execute: the packed operand overlaps the plain operand; pack to other memory");
  }
  if (call.views.size() < 2) call.views.resize(2);
  detail::bind_view(
      view, {nullptr, 0, 0}, [](bp_buffer*) { return Span{}; }, call.views[0]);
  call.views[0].data = src.address + src_offset;
  call.views[1] = call.views[0];
  call.views[1].data = to;
  call.views[1].is_packed = true;
  call.op = pack.op;
  call.state = pack.prepared.state;
  call.inputs = {call.views.data(), 1};
  call.outputs = {call.views.data() + 1, 1};
  detail::bind_scalars(
      *pack.op, 0, nullptr, [](bp_buffer*) { return Span{}; }, call);
  call.workspace = nullptr;
  call.workspace_bytes = 0;
  return {};
}

// Fills `call` from an execution that the host has checked. The execution must be of the plan's
// class, and its operands must lie within their buffers. `span_of(bp_buffer*)` returns a buffer's
// Span. Allocates only if `call` has never contained this many operands.
template <class SpanOf>
void bind_unchecked(const Plan& plan, const bp_execution& execution, const SpanOf& span_of, Call& call) {
  const bp_op_desc& desc = *execution.desc;
  const OpInfo& op = *plan.op;
  const uint32_t inputs = plan.input_count, count = inputs + plan.output_count;
  if (call.views.size() < count) [[unlikely]]
    call.views.resize(count);
  View* views = call.views.data();
  for (uint32_t i = 0; i < inputs; ++i) detail::bind_view(desc.inputs[i], execution.inputs[i], span_of, views[i]);
  for (uint32_t i = inputs; i < count; ++i) {
    detail::bind_view(desc.outputs[i - inputs], execution.outputs[i - inputs], span_of, views[i]);
  }
  call.op = &op;
  if (call.state != plan.state) call.state = plan.state;
  call.inputs = {views, inputs};
  call.outputs = {views + inputs, plan.output_count};
  if (op.attributes->bytes != 0) std::memcpy(call.attribute_bytes.bytes, plan.attributes.bytes, op.attributes->bytes);
  detail::bind_scalars(op, desc.scalar_count, execution.scalars, span_of, call);
  call.workspace_bytes = execution.workspace_bytes;
  call.workspace = execution.workspace == nullptr || plan.workspace_bytes == 0
                       ? nullptr
                       : span_of(execution.workspace).address + execution.workspace_offset;
}

// Like bind_unchecked, with checks. If the execution is not of the plan's class, or an operand
// exceeds its buffer, returns INVALID_ARGUMENT and leaves `call` unchanged.
template <class SpanOf>
Status bind_checked(const Plan& plan, const bp_execution* execution, const SpanOf& span_of, Call& call) {
  Status status = detail::check_execution(plan, execution, span_of);
  if (status.ok()) bind_unchecked(plan, *execution, span_of, call);
  return status;
}

// Binds an execution in plan_execute. Core has already validated the execution. The layer
// `validation` can check the executions of any plugin. A build without NDEBUG, or with
// BACKPLANE_KIT_CHECKED=1, checks the execution again.
template <class SpanOf>
Status bind_call(const Plan& plan, const bp_execution* execution, const SpanOf& span_of, Call& call) {
#if BACKPLANE_KIT_CHECKED
  return bind_checked(plan, execution, span_of, call);
#else
  bind_unchecked(plan, *execution, span_of, call);
  return {};
#endif
}

}  // namespace backplane::kit
