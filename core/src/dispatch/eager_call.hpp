// SPDX-License-Identifier: Apache-2.0
// Reads a bph_call, converts it to canonical form, resolves its operands and reports broken rules.
#pragma once

#include <backplane/backplane.h>

#include <algorithm>
#include <backplane/rules/canonical.hpp>

#include "dispatch/descriptor.hpp"
#include "dispatch/plan_cache.hpp"
#include "loading/device.hpp"
#include "memory/buffer.hpp"

namespace backplane::core {

// A bph_call may set the flags kCallFlags. Only a bp_op_desc may set the flags kPlanFlags.
inline constexpr uint64_t kPlanFlags = BP_OP_FLAG_SPECIALIZE;
inline constexpr uint64_t kCallFlags = (BP_OP_FLAGS_ALL & ~kPlanFlags) | BPH_CALL_NO_NATIVE;

// The operands of a call, resolved to the plugin's buffers and offsets: inputs, then outputs. Elements past the operand
// count are uninitialised.
struct Operands {
  bp_operand at[2 * BP_MAX_OPERANDS];
  // An entry is null for an immediate or an operand without a buffer. The buffers of scalars in
  // device memory follow the outputs.
  const Buffer* buffers[2 * BP_MAX_OPERANDS + rules::kMaxScalars];
};

// Returns whether the arrays of scalars disagree with the count and BP_OP_FLAG_DEVICE_SCALARS.
inline bool bad_scalar_arrays(const bph_call& call) noexcept {
  const bool on_device = (call.flags & BP_OP_FLAG_DEVICE_SCALARS) != 0;
  const bool missing = on_device ? call.scalar_tensors == nullptr : call.scalars == nullptr;
  const bool extra = on_device ? call.scalars != nullptr : call.scalar_tensors != nullptr;
  return (missing & (call.scalar_count != 0)) | extra;
}

// The operand counts of a call in canonical form, which has no absent operands at the end.
struct CallCounts {
  uint32_t inputs, outputs;

  // Requires non-null arrays, at most BP_MAX_OPERANDS inputs, and 1 to BP_MAX_OPERANDS outputs.
  [[gnu::always_inline]] static CallCounts of(const bph_call& call) noexcept {
    using rules::trimmed;
    return {trimmed(call.inputs, call.input_count), trimmed(call.outputs, call.output_count, 1)};
  }
};

// Returns a mask of the inputs that have the same buffer, offset, dtype, shape and strides as
// `output`.
inline uint32_t identical_inputs(const bph_tensor& output, const bph_tensor* inputs, uint32_t count) noexcept {
  uint32_t mask = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const bph_tensor& input = inputs[i];
    if (input.buffer != output.buffer || input.offset != output.offset || output.buffer == nullptr) continue;
    bool same = input.dtype == output.dtype && input.rank == output.rank && input.flags == output.flags;
    for (uint32_t d = 0; same && d < output.rank && d < BP_MAX_RANK; ++d) {
      same = input.shape[d] == output.shape[d] && input.strides[d] == output.strides[d];
    }
    if (same) mask |= 1u << i;
  }
  return mask;
}

// Only elementwise kernels work in place, because they read each element before they write it. For
// other operators core first copies an input that an output overlays.
inline bool works_in_place(const OpRow& row) noexcept { return row.shape_rule == BP_SHAPE_ELEMENTWISE; }

// Returns whether an input is packed. A fallback device does not know the packed layout, so such a call never runs
// there. Requires a call with legal arrays and counts.
inline bool has_packed(const bph_call& call) noexcept {
  return std::any_of(call.inputs, call.inputs + CallCounts::of(call).inputs,
                     [](const bph_tensor& input) { return input.flags == BPH_TENSOR_PACKED; });
}

// Copies a call whose struct_size may differ from the size of this library's bph_call. Throws if the size is illegal or
// the call uses unknown fields.
bph_call read_call(const bph_call& given, const char* function);

// Makes the descriptor of a call and resolves the operands. Throws if the call is invalid.
// `is_query` is true for bph_device_supports. In a query, scalars may be null, and outputs without
// a buffer may state the input that they will alias.
Descriptor describe(const OpRow& row, const Device& device, const bph_call& call, bool is_query, Operands& operands);

// Throws unless each view is within its buffer.
void check_bounds(const PlanEntry& entry, const bph_call& call, const Operands& operands);
// Throws unless the view of operand `at` is within its buffer.
void check_bounds(const PlanEntry& entry, const bph_call& call, const Operands& operands, uint32_t at);

// Resolves the scalars of a call with BP_OP_FLAG_DEVICE_SCALARS, and adds their buffers to
// `operands`. Throws unless each scalar is a view of one value of the operator's scalar dtype, in
// memory that operands may use, and shares no byte with an output.
void resolve_scalars(const Device& device, const PlanEntry& entry, const bph_call& call, Operands& operands,
                     bp_operand* scalars);

// Throws if an output shares a byte with another operand, unless the output is exactly the same
// view as an input. Views in different buffers never overlap.
void check_overlaps(const PlanEntry& entry, const Operands& operands);

}  // namespace backplane::core
