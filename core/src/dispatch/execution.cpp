// SPDX-License-Identifier: Apache-2.0
// Runs plans and programs. Core stages an operand in a dense temporary if the plan's masks select the operand, or if
// the operand is an input that an output overlays.
#include <algorithm>

#include "base/error.hpp"
#include "base/work_scope.hpp"
#include "composite/program.hpp"
#include "dispatch/execution.hpp"
#include "graph/recorder.hpp"

namespace backplane::core {

namespace {

// Temporary memory of a stream. The memory may be released while pending work still uses it, because the allocator
// reuses the memory only after that work, in the stream's order.
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
    if (stream.recorder != nullptr) return stream.recorder->stage(stream, bytes);
    span_ = stream.device->allocator.allocate(BP_MEMORY_DEVICE, bytes, stream.device->full_alignment(), &stream);
    allocator_ = &stream.device->allocator;
    return {span_.buffer, span_.offset, 0};
  }

 private:
  Allocator* allocator_ = nullptr;
  Span span_;
};

[[noreturn]] void staged_copy(const Device& device, const OpRow& row) {
  throw Error(
      BP_INTERNAL,
      "{}: the plugin requests staging of operands of {}, which must accept any strides itself; it is nonconforming",
      device.name, row.name)
      .with_op(row.id);
}

// Returns the entry that copies view `from` to view `to`: a COPY, or a FILL if the source is an
// immediate. Throws the errors of PlanCache::get.
Ref<PlanEntry> plan_copy(Stream& stream, const bp_tensor_desc& from, const bp_tensor_desc& to) {
  const bool fills = (from.flags & BP_DESC_IMMEDIATE) != 0;
  DescriptorHead head;
  head.op = fills ? BP_OP_FILL : BP_OP_COPY;
  head.inputs = fills ? 0 : 1;
  head.outputs = 1;
  head.scalars = fills ? 1 : 0;
  Descriptor key(*op_row(head.op), head);
  bp_tensor_desc* views = key.views();
  if (!fills) *views++ = from;
  *views = to;
  return Ref<PlanEntry>(&stream.device->plans.get(stream.plan_cache, key));
}

// A copy to or from a temporary. The copy is planned before any work is enqueued, so that running
// it needs no memory.
class StagingCopy {
 public:
  void plan(Stream& stream, const bp_tensor_desc& from, bp_tensor_desc to) {
    to.alias = 0;
    fills_ = (from.flags & BP_DESC_IMMEDIATE) != 0;
    entry_ = plan_copy(stream, from, to);
    if (!entry_->direct) staged_copy(*stream.device, *entry_->row);
  }
  uint64_t workspace_bytes() const noexcept { return entry_ ? entry_->workspace_bytes : 0; }
  // Does nothing if no copy was planned.
  void run(Stream& stream, const bp_operand& source, const bp_operand& target) const {
    if (!entry_) return;
    run_plan(stream, *entry_, entry_->desc, fills_ ? nullptr : &source, &target, fills_ ? &source : nullptr);
  }

 private:
  Ref<PlanEntry> entry_;
  bool fills_ = false;
};

// Returns 1 + the index of the first input that is identical to `output` and not staged, or 0 if
// there is no such input.
template <class Staged>
uint16_t alias_of_staged(const bp_op_desc& original, const bp_tensor_desc& output, const bp_operand* inputs,
                         Staged&& staged) {
  if (output.alias == 0) return 0;
  const uint32_t first = output.alias - 1u;
  for (uint32_t i = first; i < original.input_count; ++i) {
    const bool same =
        i == first || (inputs[i].buffer == inputs[first].buffer && inputs[i].offset == inputs[first].offset &&
                       same_elements(original.inputs[i], original.inputs[first]));
    if (same && staged(i) == 0) return static_cast<uint16_t>(i + 1);
  }
  return 0;
}

void run_staged(Stream& stream, PlanEntry& borrowed, const bp_operand* inputs, const bp_operand* outputs,
                const bp_operand* scalars) {
  // The entry needs a reference, because looking up the plans of copies may evict the entry from
  // the cache.
  const Ref<PlanEntry> entry(&borrowed);
  bp_plan_info info = {};
  if (entry->plan) info = entry->plan->info;
  info.stage_inputs |= entry->head().overlaid;
  const bp_op_desc& original = entry->desc;
  if (entry->head().overlaid == 0 && (original.op == BP_OP_COPY || original.op == BP_OP_FILL)) {
    staged_copy(*stream.device, *entry->row);
  }
  bp_tensor_desc views[2 * BP_MAX_OPERANDS];
  bp_operand operands[2 * BP_MAX_OPERANDS];
  Temporary temporaries[2 * BP_MAX_OPERANDS];
  StagingCopy copies_in[2 * BP_MAX_OPERANDS], copies_out[BP_MAX_OPERANDS];
  const uint32_t input_count = original.input_count;
  const uint32_t count = input_count + original.output_count;
  const auto staged = [&](uint32_t i) {
    return (i < input_count ? info.stage_inputs >> i : info.stage_outputs >> (i - input_count)) & 1u;
  };
  uint64_t operands_staged = 0;
  uint64_t bytes_staged = 0;
  uint64_t workspace_bytes = entry->workspace_bytes;
  // The memory and the plans for staging are obtained first, so that a failure leaves no work enqueued.
  for (uint32_t i = 0; i < count; ++i) {
    const bp_tensor_desc& view = entry->views[i];
    views[i] = i < input_count ? original.inputs[i] : original.outputs[i - input_count];
    operands[i] = i < input_count ? inputs[i] : outputs[i - input_count];
    if (staged(i) == 0 || view.dtype == 0) continue;
    views[i] = staged_like(view, stream.device->full_alignment_log2);
    const uint64_t bytes = static_cast<uint64_t>(element_count(view)) * dtype_bytes(view.dtype);
    operands[i] = temporaries[i].allocate(stream, bytes);
    ++operands_staged;
    bytes_staged += bytes;
    const WorkScope scope("staging", entry->row->name);
    if (i < input_count || reads_outputs(*entry->row)) {
      copies_in[i].plan(stream, view, views[i]);
      workspace_bytes = std::max(workspace_bytes, copies_in[i].workspace_bytes());
    }
    if (i >= input_count) {
      copies_out[i - input_count].plan(stream, views[i], view);
      workspace_bytes = std::max(workspace_bytes, copies_out[i - input_count].workspace_bytes());
    }
  }
  if (workspace_bytes != 0 && stream.recorder == nullptr) (void)stream.workspace_of(workspace_bytes);
  for (uint32_t i = input_count; i < count; ++i) {
    if (staged(i) == 0) views[i].alias = alias_of_staged(original, views[i], inputs, staged);
  }
  bp_op_desc desc = original;
  desc.inputs = views;
  desc.outputs = views + input_count;
  {
    const WorkScope scope("staging", entry->row->name);
    for (uint32_t i = 0; i < count; ++i) {
      copies_in[i].run(stream, i < input_count ? inputs[i] : outputs[i - input_count], operands[i]);
    }
  }
  if (entry->program) {
    run_program(stream, *entry, operands, operands + input_count, scalars);
  } else {
    run_plan(stream, *entry, desc, operands, operands + input_count, scalars);
  }
  const WorkScope scope("staging", entry->row->name);
  for (uint32_t o = 0; o < original.output_count; ++o) {
    copies_out[o].run(stream, operands[input_count + o], outputs[o]);
  }
  stream.device->counters.staged_operands.fetch_add(operands_staged, std::memory_order_relaxed);
  stream.device->counters.staged_bytes.fetch_add(bytes_staged, std::memory_order_relaxed);
}

}  // namespace

void record_plan(Stream& stream, const PlanEntry& entry, const bp_op_desc& desc, const bp_operand* inputs,
                 const bp_operand* outputs, const bp_operand* scalars) {
  stream.recorder->execute(stream, entry, desc, inputs, outputs, scalars);
}

void run_indirect(Stream& stream, PlanEntry& entry, const bp_operand* inputs, const bp_operand* outputs,
                  const bp_operand* scalars) {
  const bool whole = entry.program && entry.head().overlaid == 0;
  (whole ? run_program : run_staged)(stream, entry, inputs, outputs, scalars);
}

}  // namespace backplane::core
