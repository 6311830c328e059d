// SPDX-License-Identifier: Apache-2.0
// Images in the layout channels-last: [N, C, ..] whose channels are the innermost dimension in memory.
// Kernels that support this layout also support dense images. Core stages other layouts.
#pragma once

#include <backplane/kit/kernels.hpp>

namespace backplane::onednn {

// Returns whether the elements are contiguous in the order N, spatial dimensions, C. Returns false if the view
// is also dense, for example because C is 1.
inline bool is_channels_last(const bp_tensor_desc& view) {
  if (view.rank < 3 || (view.flags & BP_DESC_IMMEDIATE) != 0 || rules::is_packed(view)) return false;
  bp_tensor_desc moved = view;
  std::rotate(moved.shape + 1, moved.shape + 2, moved.shape + moved.rank);
  std::rotate(moved.strides + 1, moved.strides + 2, moved.strides + moved.rank);
  return rules::is_dense(moved) && !rules::is_dense(view);
}

// Masks of operands: bit i of `inputs` selects input i, and bit i of `outputs` selects output i.
struct OperandMasks {
  uint32_t inputs, outputs;
};

// Requests in `needs` that core stages each operand that is not dense. If an operand in the masks `images` is
// channels-last, core does not stage it.
inline void stage_all_but(const OperandMasks& images, const kit::CheckedDesc& checked, kit::PlanNeeds& needs) {
  const kit::PlanNeeds dense = kit::common_needs(checked, true), any = kit::common_needs(checked, false);
  const auto accepted = [](uint32_t mask, const bp_tensor_desc* views, uint32_t count) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; ++i) found |= (mask >> i & 1u) != 0 && is_channels_last(views[i]) ? 1u << i : 0;
    return found;
  };
  const bp_op_desc& desc = checked.desc;
  needs.stage_inputs |=
      any.stage_inputs | (dense.stage_inputs & ~accepted(images.inputs, desc.inputs, desc.input_count));
  needs.stage_outputs |=
      any.stage_outputs | (dense.stage_outputs & ~accepted(images.outputs, desc.outputs, desc.output_count));
}

// Like stage_all_but, for kernels that need input 0 and output 0 in the same layout. If both are channels-last,
// requests staging of neither, and returns true. Otherwise requests staging of each one that is not dense, and
// returns false.
inline bool stage_unless_both(const kit::CheckedDesc& checked, kit::PlanNeeds& needs) {
  const bp_op_desc& desc = checked.desc;
  const kit::PlanNeeds any = kit::common_needs(checked, false);
  const bool both = is_channels_last(desc.inputs[0]) && is_channels_last(desc.outputs[0]) &&
                    ((needs.stage_inputs | any.stage_inputs) & 1u) == 0;
  stage_all_but({both, both}, checked, needs);
  return both;
}

}  // namespace backplane::onednn
