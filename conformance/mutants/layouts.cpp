// SPDX-License-Identifier: Apache-2.0
// Defects in layouts: strides of dimensions of extent 0 or 1 affect the result, although they must
// not.
#include <map>
#include <mutex>

#include "mutation.hpp"
#include "views.hpp"

namespace backplane::conformance::mutants {
namespace {

std::mutex made_mutex;
std::map<bp_plan*, std::vector<bp_tensor_desc>>& made_for() {
  static auto* plans = new std::map<bp_plan*, std::vector<bp_tensor_desc>>;
  return *plans;
}
std::vector<bp_tensor_desc> operands_of(const bp_op_desc& desc) {
  std::vector<bp_tensor_desc> all(desc.inputs, desc.inputs + desc.input_count);
  all.insert(all.end(), desc.outputs, desc.outputs + desc.output_count);
  return all;
}
bp_status remember_strides(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                           bp_error* error) {
  const bp_status status = kHonest.plan_create(device, desc, out, info, error);
  if (status != BP_OK || out == nullptr) return status;
  const std::lock_guard lock(made_mutex);
  made_for()[*out] = operands_of(*desc);
  return status;
}
void forget_strides(bp_device* device, bp_plan* plan) {
  {
    const std::lock_guard lock(made_mutex);
    made_for().erase(plan);
  }
  kHonest.plan_destroy(device, plan);
}
bp_status compare_strides(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                          bp_error* error) {
  {
    const std::lock_guard lock(made_mutex);
    const std::vector<bp_tensor_desc>&made = made_for()[plan], given = operands_of(*execution->desc);
    for (std::size_t i = 0; i < made.size() && i < given.size(); ++i)
      for (uint32_t d = 0; d < made[i].rank; ++d)
        if (made[i].shape[d] <= 1 && given[i].shape[d] == made[i].shape[d] && given[i].strides[d] != made[i].strides[d])
          return report(error, BP_INVALID_ARGUMENT, "mutant: not the plan's descriptor");
  }
  return kHonest.plan_execute(device, stream, plan, execution, error);
}

// Fails the execution if `wrong(view, operand)` is true for one of the operands.
template <class Wrong>
bp_status execute_unless(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                         bp_error* error, const Wrong& wrong) {
  const bp_op_desc& desc = *execution->desc;
  bool refused = false;
  for (uint32_t i = 0; i < desc.input_count; ++i) refused |= wrong(desc.inputs[i], execution->inputs[i]);
  for (uint32_t i = 0; i < desc.output_count; ++i) refused |= wrong(desc.outputs[i], execution->outputs[i]);
  if (refused) return report(error, BP_INVALID_ARGUMENT, "mutant: the operand does not fit into its buffer");
  return kHonest.plan_execute(device, stream, plan, execution, error);
}
bool is_empty(const bp_tensor_desc& view) {
  return std::find(view.shape, view.shape + view.rank, 0) != view.shape + view.rank;
}
bp_status count_by_extent(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                          bp_error* error) {
  return execute_unless(device, stream, plan, execution, error,
                        [](const bp_tensor_desc& view, const bp_operand& operand) {
                          if (operand.buffer == nullptr || is_empty(view)) return false;
                          for (uint32_t d = 0; d < view.rank; ++d) {
                            const double bytes = static_cast<double>(view.strides[d]) * dtype_bytes(view.dtype);
                            if (view.shape[d] == 1 && bytes > static_cast<double>(buffer_of(operand.buffer).span.bytes))
                              return true;
                          }
                          return false;
                        });
}
bp_status reach_of_empty(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                         bp_error* error) {
  return execute_unless(
      device, stream, plan, execution, error, [](const bp_tensor_desc& view, const bp_operand& operand) {
        if (operand.buffer == nullptr || !is_empty(view)) return false;
        for (uint32_t d = 0; d < view.rank; ++d)
          if (view.shape[d] == 0 && view.strides[d] > 0 && static_cast<uint64_t>(view.strides[d]) > operand.offset)
            return true;
        return false;
      });
}
bp_status refuse_overlap(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                         bp_error* error) {
  const bp_status status = kHonest.plan_create(device, desc, nullptr, info, error);
  if (status != BP_OK) return kHonest.plan_create(device, desc, out, info, error);
  for (uint32_t i = 0; i < desc->output_count; ++i)
    for (uint32_t d = 0; d < desc->outputs[i].rank; ++d)
      if (desc->outputs[i].strides[d] == 0) {
        if (out != nullptr) *out = nullptr;
        return report(error, BP_UNSUPPORTED, "mutant: the output overlaps itself");
      }
  return kHonest.plan_create(device, desc, out, info, error);
}

// Fails like a BLAS function that checks leading dimensions even if a matrix has only one row.
void check_leading_dimension(const Call& call) {
  const auto wrong = [](const View& view) {
    if (view.rank < 2) return false;
    const int64_t rows = view.strides[view.rank - 2], columns = view.strides[view.rank - 1];
    return columns == 1 && rows != 0 && rows < view.shape[view.rank - 1] && view.shape[view.rank - 2] == 1;
  };
  if (wrong(call.in(0)) || wrong(call.in(1)) || wrong(call.out()))
    throw std::runtime_error("mutant: bad leading dimension");
  honest_kernel(call)(call);
}

// Assumes that a dimension with stride -1 is reversed, and therefore moves the start of the view by one element. For a
// dimension of extent 1, the moved start is wrong.
void begin_reversed(const Call& call) {
  Altered altered(call);
  for (std::size_t i = 0; i < altered.inputs(); ++i) {
    View& view = altered.in(i);
    if (view.data == nullptr || is_immediate(view) || view.elements() < 2) continue;
    for (uint32_t d = 0; d < view.rank; ++d)
      if (view.shape[d] == 1 && view.strides[d] == -1) view.data += bytes_of(view);
  }
  altered.run(honest_kernel(call));
}

}  // namespace

const Mutation defect::unit_strides_compared{.api = [](bp_device_api& api) {
  api.plan_create = remember_strides;
  api.plan_destroy = forget_strides;
  api.plan_execute = compare_strides;
}};
const Mutation defect::span_by_extent = on_slot<&bp_device_api::plan_execute, count_by_extent>();
const Mutation defect::empty_has_reach = on_slot<&bp_device_api::plan_execute, reach_of_empty>();
const Mutation defect::unit_output_overlaps = on_slot<&bp_device_api::plan_create, refuse_overlap>();
const Mutation defect::leading_dimension_checked = on_op<check_leading_dimension, BP_OP_MATMUL>();
const Mutation defect::unit_stride_as_pitch{
    .kernels = [](Kernels& kernels) { replace_all(kernels, ops_of(BP_SHAPE_ELEMENTWISE), begin_reversed); }};

}  // namespace backplane::conformance::mutants
