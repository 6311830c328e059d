// SPDX-License-Identifier: Apache-2.0
// The arguments of a launch on a queue device: strided views of native memory, immediates,
// attributes, scalars and workspace.
#pragma once

#include <backplane/kit/plan_form.hpp>
#include <span>

namespace backplane::kit {

// A buffer of a queue device. `Memory` is the plugin's type of handles, which should be as small as
// a pointer.
template <class Memory>
struct QueueBuffer {
  Memory memory{};
  uint64_t bytes = 0;
  uint32_t kind = BP_MEMORY_DEVICE;
};

// A location in a buffer. The memory is null and the offset 0 for an operand that is absent or has
// no elements.
template <class Memory>
struct Place {
  Memory memory{};
  uint64_t offset = 0;  // bytes
};

// A strided view with its location. Strides are in elements.
template <class Memory>
struct QueueView {
  Place<Memory> place;  // location of element 0
  uint32_t dtype = 0;   // 0 means absent
  uint32_t rank = 0;
  int64_t shape[BP_MAX_RANK] = {};
  int64_t strides[BP_MAX_RANK] = {};
  bool is_immediate = false;  // the value is `immediate`, and `place` is unused
  uint64_t immediate = 0;

  int64_t elements() const {
    int64_t count = 1;
    for (uint32_t i = 0; i < rank; ++i) count *= shape[i];
    return count;
  }
};

// A scalar: a value from the host or, with BP_OP_FLAG_DEVICE_SCALARS, a location that the kernel
// reads when it runs.
template <class Memory>
struct QueueScalar {
  Place<Memory> place;
  bool on_device = false;
  uint64_t bits = 0;

  // Returns the value of a scalar from the host. T has the size of the scalar's dtype.
  template <class T>
  T value() const {
    T out;
    std::memcpy(&out, &bits, sizeof(T));
    return out;
  }
};

// One execution and its arguments. The stream owns a QueueCall and reuses it without allocating.
// The contents are valid only during launch(), so launch() must copy whatever the device reads
// later.
template <class Memory>
struct QueueCall {
  const OpInfo* op = nullptr;
  std::span<const QueueView<Memory>> inputs;
  std::span<const QueueView<Memory>> outputs;
  std::span<const QueueScalar<Memory>> scalars;
  Place<Memory> workspace;
  uint64_t workspace_bytes = 0;
  const Attributes* attribute_bytes = nullptr;

  const QueueView<Memory>& in(uint32_t i) const { return inputs[i]; }
  const QueueView<Memory>& out(uint32_t i = 0) const { return outputs[i]; }
  template <class T>
  const T& attributes() const {
    return attribute_bytes->as<T>();
  }

  std::array<QueueView<Memory>, rules::kMaxOperands> views;  // inputs, then outputs
  std::array<QueueScalar<Memory>, rules::kMaxScalars> scalar_values;
};

namespace detail {

template <class Memory>
const QueueBuffer<Memory>& queue_buffer(bp_buffer* buffer) {
  return *reinterpret_cast<const QueueBuffer<Memory>*>(buffer);
}

template <class Memory>
void bind_queue_view(const bp_tensor_desc& desc, const bp_operand& operand, QueueView<Memory>& view) {
  view.dtype = desc.dtype;
  view.rank = desc.dtype == 0 ? 0 : desc.rank;
  view.place = {};
  view.is_immediate = (desc.flags & BP_DESC_IMMEDIATE) != 0;
  view.immediate = view.is_immediate ? operand.immediate : 0;
  bool elements = desc.dtype != 0;
  for (uint32_t d = 0; d < view.rank; ++d) {
    view.shape[d] = desc.shape[d];
    view.strides[d] = desc.strides[d];
    elements &= desc.shape[d] != 0;
  }
  if (elements && !view.is_immediate) view.place = {queue_buffer<Memory>(operand.buffer).memory, operand.offset};
}

}  // namespace detail

// Fills `call` from an execution of the plan's class. Core has already validated the execution. The
// layer `validation` can check the executions of any plugin. A build without NDEBUG, or with
// BACKPLANE_KIT_CHECKED=1, checks the execution again. If this check returns INVALID_ARGUMENT,
// `call` is unchanged.
template <class Memory>
Status bind_queue_call(const PlanForm& plan, const bp_execution* execution, QueueCall<Memory>& call) {
#if BACKPLANE_KIT_CHECKED
  const auto span_of = [](bp_buffer* buffer) { return Span{nullptr, detail::queue_buffer<Memory>(buffer).bytes}; };
  if (Status status = detail::check_execution(plan, execution, span_of); !status.ok()) return status;
#endif
  const bp_op_desc& desc = *execution->desc;
  const uint32_t inputs = plan.input_count, count = inputs + plan.output_count;
  for (uint32_t i = 0; i < count; ++i) {
    const bool input = i < inputs;
    const uint32_t index = input ? i : i - inputs;
    detail::bind_queue_view((input ? desc.inputs : desc.outputs)[index],
                            (input ? execution->inputs : execution->outputs)[index], call.views[i]);
  }
  call.op = plan.op;
  call.inputs = {call.views.data(), inputs};
  call.outputs = {call.views.data() + inputs, plan.output_count};
  call.attribute_bytes = &plan.attributes;
  for (uint32_t i = 0; i < plan.op->scalars_max; ++i) {  // omitted scalars are zero
    const bp_operand given = i < desc.scalar_count ? execution->scalars[i] : bp_operand{};
    QueueScalar<Memory>& scalar = call.scalar_values[i];
    scalar.on_device = given.buffer != nullptr;
    scalar.bits = given.immediate;
    scalar.place = {};
    if (scalar.on_device) scalar.place = {detail::queue_buffer<Memory>(given.buffer).memory, given.offset};
  }
  call.scalars = {call.scalar_values.data(), plan.op->scalars_max};
  const bool workspace = execution->workspace != nullptr && execution->workspace_bytes != 0;
  call.workspace = {};
  if (workspace) {
    call.workspace = {detail::queue_buffer<Memory>(execution->workspace).memory, execution->workspace_offset};
  }
  call.workspace_bytes = workspace ? execution->workspace_bytes : 0;
  return {};
}

}  // namespace backplane::kit
