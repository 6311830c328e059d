// SPDX-License-Identifier: Apache-2.0
// Defects in arithmetic that is too narrow for far operands: 32-bit offsets, pitches and products.
#include "mutation.hpp"
#include "views.hpp"

namespace backplane::conformance::mutants {
namespace {

bp_status cut_operands(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                       bp_error* error) {
  const auto cut = [](const bp_operand* operands, uint32_t count) {
    std::vector<bp_operand> changed(operands, operands + count);
    for (bp_operand& operand : changed) operand.offset &= UINT32_MAX;
    return changed;
  };
  const std::vector<bp_operand> inputs = cut(execution->inputs, execution->desc->input_count);
  const std::vector<bp_operand> outputs = cut(execution->outputs, execution->desc->output_count);
  bp_execution changed = *execution;
  changed.inputs = inputs.data();
  changed.outputs = outputs.data();
  return kHonest.plan_execute(device, stream, plan, &changed, error);
}
bp_status cut_workspace(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                        bp_error* error) {
  bp_execution changed = *execution;
  changed.workspace_offset &= UINT32_MAX;
  return kHonest.plan_execute(device, stream, plan, &changed, error);
}
bp_status cut_scalars(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                      bp_error* error) {
  std::vector<bp_operand> scalars;
  if (execution->scalars != nullptr)
    scalars.assign(execution->scalars, execution->scalars + execution->desc->scalar_count);
  for (bp_operand& scalar : scalars) scalar.offset &= UINT32_MAX;
  bp_execution changed = *execution;
  changed.scalars = scalars.data();
  return kHonest.plan_execute(device, stream, plan, &changed, error);
}
// A kernel of reduce_sum on f32 that uses a workspace.
void sum_with_workspace(const Call& call) {
  honest_kernel(call)(call);
  std::memset(call.workspace, 0xEE, 64);
}

// Truncates a stride in bytes to 32 bits.
void cut_stride(View& view, uint32_t d) {
  if (view.shape[d] > 1) view.strides[d] = static_cast<int32_t>(view.strides[d] * bytes_of(view)) / bytes_of(view);
}
void cut_strides(View& view) {
  for (uint32_t d = 0; d < view.rank; ++d) cut_stride(view, d);
}
// Runs the kernel after `change(altered)` has modified the views.
template <class Change>
void run_with(const Call& call, const Change& change) {
  Altered altered(call);
  change(altered);
  altered.run(honest_kernel(call));
}

void cut_pitches(const Call& call) {
  run_with(call, [](Altered& altered) {
    for (View* view : {&altered.in(0), &altered.in(1), &altered.out()})
      for (uint32_t d = view->rank - 2; d < view->rank; ++d) cut_stride(*view, d);
  });
}
void cut_batches(const Call& call) {
  run_with(call, [](Altered& altered) {
    for (View* view : {&altered.in(0), &altered.in(1), &altered.out()})
      for (uint32_t d = 0; d + 2 < view->rank; ++d) cut_stride(*view, d);
  });
}
void cut_reduced(const Call& call) {
  run_with(call, [&](Altered& altered) {
    for (uint32_t d = 0; d < altered.in(0).rank; ++d)
      if ((call.attributes<bp_reduce_attributes>().axes >> d & 1u) != 0) cut_stride(altered.in(0), d);
  });
}
void cut_lanes(const Call& call) {
  // The attributes of every operator that uses this kernel begin with `axis`.
  const uint32_t axis = call.attributes<bp_axis_attributes>().axis;
  run_with(call, [&](Altered& altered) {
    for (uint32_t d = 0; d < altered.in(0).rank; ++d)
      if (d != axis) cut_stride(altered.in(0), d);
  });
}

// Truncates the product of an index and the row pitch to 32 bits.
template <bool kScatter>
void cut_products(const Call& call) {
  const uint32_t axis =
      kScatter ? call.attributes<bp_scatter_attributes>().axis : call.attributes<bp_axis_attributes>().axis;
  const View& table = kScatter ? call.out() : call.in(0);
  const int64_t size = kScatter ? bytes_of(table) : 1;
  if (table.elements() == 0) return honest_kernel(call)(call);
  const int64_t last = (table.shape[axis] - 1) * table.strides[axis] * size;
  if (last <= INT32_MAX) return honest_kernel(call)(call);
  // No single stride gives the truncated offsets of all rows. The stride below gives the truncated
  // offset of the last row.
  run_with(call, [&](Altered& altered) {
    View& far = kScatter ? altered.out() : altered.in(0);
    const int64_t cut =
        kScatter ? static_cast<int64_t>(static_cast<uint32_t>(last)) : int64_t{static_cast<int32_t>(last)};
    far.strides[axis] = cut / size / (far.shape[axis] - 1);
  });
}
void cut_third(const Call& call) {
  run_with(call, [](Altered& altered) { cut_strides(altered.in(2)); });
}
void cut_second(const Call& call) {
  run_with(call, [](Altered& altered) { cut_strides(altered.in(1)); });
}
void cut_results(const Call& call) {
  run_with(call, [](Altered& altered) { cut_strides(altered.out()); });
}

}  // namespace

const Mutation defect::operand_offset_in_32_bits = on_slot<&bp_device_api::plan_execute, cut_operands>();
const Mutation defect::workspace_offset_in_32_bits{
    .kernels =
        [](Kernels& kernels) {
          kernels.add(BP_OP_REDUCE_SUM, BP_F32, BP_F32, KernelSpec{.run = sum_with_workspace, .workspace_bytes = 64});
        },
    .api = [](bp_device_api& api) { api.plan_execute = cut_workspace; }};
const Mutation defect::scalar_offset_in_32_bits = on_slot<&bp_device_api::plan_execute, cut_scalars>();
const Mutation defect::far_pitch_of_products = on_op<cut_pitches, BP_OP_MATMUL>();
const Mutation defect::far_batch_of_products = on_op<cut_batches, BP_OP_MATMUL>();
const Mutation defect::far_rows_of_sums{
    .kernels = [](Kernels& kernels) { replace_all(kernels, ops_of(BP_SHAPE_REDUCE), cut_reduced); }};
const Mutation defect::far_lanes_of_scans{.kernels = [](Kernels& kernels) {
  replace_all(kernels, std::initializer_list<uint32_t>{BP_OP_CUMSUM, BP_OP_SORT, BP_OP_ARGMAX, BP_OP_ARGMIN},
              cut_lanes);
}};
const Mutation defect::far_index_of_gather = on_op<cut_products<false>, BP_OP_GATHER>();
const Mutation defect::far_index_of_scatter = on_op<cut_products<true>, BP_OP_SCATTER>();
const Mutation defect::far_third_operand = on_op<cut_third, BP_OP_SELECT>();
const Mutation defect::far_second_of_binary{
    .kernels = [](Kernels& kernels) { replace_all(kernels, ops_of(BP_SHAPE_ELEMENTWISE, 2), cut_second); }};
const Mutation defect::far_results{
    .kernels = [](Kernels& kernels) { replace_all(kernels, ops_of(BP_SHAPE_ELEMENTWISE, 1), cut_results); }};

}  // namespace backplane::conformance::mutants
