// SPDX-License-Identifier: Apache-2.0
// Running an entry with the operands that its plan's masks name copied to and from dense temporaries.
#include "staging.hpp"

#include "composite/program.hpp"
#include "dispatch.hpp"
#include "error.hpp"
#include "work_scope.hpp"

namespace bp {

namespace {

// What the views of temporaries state, and plans count on, whatever the device's own alignment is.
constexpr uint64_t full_alignment = uint64_t{1} << BP_MAX_ALIGNMENT_LOG2;

// A temporary in stream order: given back while the work on it is still pending.
class Temporary {
 public:
  Temporary() = default;
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (allocator_ != nullptr) allocator_->release(span_);
  }
  bp_operand allocate(Stream& stream, uint64_t bytes) {
    if (bytes == 0) return {nullptr, 0, 0};
    span_ = stream.device->allocator.allocate(BP_MEMORY_DEVICE, bytes, full_alignment, &stream);
    allocator_ = &stream.device->allocator;
    return {span_.buffer, span_.offset, 0};
  }

 private:
  Allocator* allocator_ = nullptr;
  Span span_;
};

bp_tensor_desc dense_like(const bp_tensor_desc& view) {
  bp_tensor_desc dense = view;
  dense.flags = 0;
  dense.alias = 0;
  dense.alignment_log2 = BP_MAX_ALIGNMENT_LOG2;
  make_dense(dense);
  return dense;
}

void copy_view(Stream& stream, const OpRow& row, const bp_tensor_desc& from, const bp_operand& source,
               const bp_tensor_desc& to, const bp_operand& target) {
  const WorkScope scope("staging", row.name);
  bp_tensor_desc out = to;
  out.alias = 0;
  if ((from.flags & BP_DESC_IMMEDIATE) != 0) {
    execute_views(stream, *op_row(BP_OP_FILL), nullptr, nullptr, nullptr, 0, &out, &target, 1, &source);
  } else {
    execute_views(stream, *op_row(BP_OP_COPY), nullptr, &from, &source, 1, &out, &target, 1, nullptr);
  }
}

void run_staged(Stream& stream, PlanEntry& borrowed, const bp_operand* inputs, const bp_operand* outputs,
                const bp_operand* scalars) {
  // The copies look plans up themselves and may displace this entry.
  const Ref<PlanEntry> entry(&borrowed);
  const bp_plan_info& info = entry->plan->info;
  const bp_op_desc& original = entry->desc;
  if (original.op == BP_OP_COPY || original.op == BP_OP_FILL) {
    throw Error(BP_INTERNAL,
                "{}: the plugin asks to stage operands of {}, which must take any strides itself; it is nonconforming",
                stream.device->name, entry->row->name)
        .with_op(entry->row->id);
  }
  bp_tensor_desc views[2 * BP_MAX_OPERANDS];
  bp_operand operands[2 * BP_MAX_OPERANDS];
  Temporary temporaries[2 * BP_MAX_OPERANDS];
  const uint32_t input_count = original.input_count;
  const uint32_t count = input_count + original.output_count;
  const auto staged = [&](uint32_t i) {
    return (i < input_count ? info.stage_inputs >> i : info.stage_outputs >> (i - input_count)) & 1u;
  };
  uint64_t operands_staged = 0;
  uint64_t bytes_staged = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const bp_tensor_desc& view = i < input_count ? original.inputs[i] : original.outputs[i - input_count];
    const bp_operand& operand = i < input_count ? inputs[i] : outputs[i - input_count];
    views[i] = view;
    operands[i] = operand;
    if (staged(i) == 0 || view.dtype == 0) continue;
    views[i] = dense_like(view);
    const uint64_t bytes = static_cast<uint64_t>(element_count(view)) * dtype_bytes(view.dtype);
    operands[i] = temporaries[i].allocate(stream, bytes);
    ++operands_staged;
    bytes_staged += bytes;
    if (i < input_count || reads_outputs(*entry->row))
      copy_view(stream, *entry->row, view, operand, views[i], operands[i]);
  }
  // An output is identical to an input only if neither moved.
  for (uint32_t i = input_count; i < count; ++i) {
    if (views[i].alias != 0 && staged(views[i].alias - 1u) != 0) views[i].alias = 0;
  }
  bp_op_desc desc = original;
  desc.inputs = views;
  desc.outputs = views + input_count;
  run_plan(stream, *entry, desc, operands, operands + input_count, scalars);
  for (uint32_t i = input_count; i < count; ++i) {
    const uint32_t o = i - input_count;
    if (staged(i) != 0) copy_view(stream, *entry->row, views[i], operands[i], original.outputs[o], outputs[o]);
  }
  stream.device->counters.staged_operands.fetch_add(operands_staged, std::memory_order_relaxed);
  stream.device->counters.staged_bytes.fetch_add(bytes_staged, std::memory_order_relaxed);
}

}  // namespace

void run_indirect(Stream& stream, PlanEntry& entry, const bp_operand* inputs, const bp_operand* outputs,
                  const bp_operand* scalars) {
  (entry.program ? run_program : run_staged)(stream, entry, inputs, outputs, scalars);
}

}  // namespace bp
