// SPDX-License-Identifier: Apache-2.0
// Defects in plans: cache keys, state, properties.
#include <map>

#include "mutation.hpp"
#include "runtime.hpp"
#include "views.hpp"

namespace backplane::conformance::mutants {
namespace {

// ---- Caches with incomplete keys

// All plans of an operator use the attributes of the first plan.
bp_status key_without_attributes(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                                 bp_error* error) {
  static std::mutex mutex;
  static std::map<uint32_t, std::vector<std::byte>> first;
  const OpInfo* op = desc == nullptr ? nullptr : find_op(desc->op);
  if (op == nullptr || desc->attributes == nullptr || out == nullptr)
    return kHonest.plan_create(device, desc, out, info, error);
  const bp_status supported = kHonest.plan_create(device, desc, nullptr, info, error);
  if (supported != BP_OK) return *out = nullptr, supported;
  bp_op_desc cached = *desc;
  {
    const std::lock_guard lock(mutex);
    const auto* bytes = static_cast<const std::byte*>(desc->attributes);
    cached.attributes = first.try_emplace(desc->op, bytes, bytes + op->attributes->bytes).first->second.data();
  }
  const bp_status status = kHonest.plan_create(device, &cached, out, info, error);
  return status == BP_OK ? status : kHonest.plan_create(device, desc, out, info, error);
}
// All dtypes of the same width use the kernel of the first dtype.
bp_status key_without_dtype(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                            bp_error* error) {
  static std::mutex mutex;
  static std::map<std::pair<uint32_t, uint32_t>, uint16_t> first;
  const OpInfo* op = desc == nullptr ? nullptr : find_op(desc->op);
  const bool plain =
      op != nullptr && op->kind == BP_KIND_PRIMITIVE && op->dtype_rule == BP_RULE_SAME && desc->outputs != nullptr;
  if (!plain || kHonest.plan_create(device, desc, nullptr, info, nullptr) != BP_OK) {
    return kHonest.plan_create(device, desc, out, info, error);
  }
  std::vector<bp_tensor_desc> inputs(desc->inputs, desc->inputs + desc->input_count);
  bp_tensor_desc output = desc->outputs[0];
  {
    const std::lock_guard lock(mutex);
    output.dtype = first.try_emplace({desc->op, dtype_bytes(output.dtype)}, output.dtype).first->second;
  }
  for (bp_tensor_desc& view : inputs) view.dtype = output.dtype;
  bp_op_desc cached = *desc;
  cached.inputs = inputs.data();
  cached.outputs = &output;
  return kHonest.plan_create(device, &cached, out, info, error);
}

// ---- State that plans must not keep

struct Seen {
  std::vector<bp_tensor_desc> inputs, outputs;
  std::vector<bp_operand> scalars;
  const bp_op_desc* desc = nullptr;
  HostStream* stream = nullptr;
  uint64_t point = 0;
};
std::mutex seen_mutex;
std::map<bp_plan*, Seen>& seen() {
  static auto* plans = new std::map<bp_plan*, Seen>;
  return *plans;
}
void forget(bp_device* device, bp_plan* plan) {
  {
    const std::lock_guard lock(seen_mutex);
    seen().erase(plan);
  }
  kHonest.plan_destroy(device, plan);
}
bp_status remember(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info, bp_error* error) {
  const bp_status status = kHonest.plan_create(device, desc, out, info, error);
  if (status != BP_OK || out == nullptr) return status;
  const std::lock_guard lock(seen_mutex);
  Seen& plan = seen()[*out] = Seen{};
  if (desc->input_count != 0) plan.inputs.assign(desc->inputs, desc->inputs + desc->input_count);
  plan.outputs.assign(desc->outputs, desc->outputs + desc->output_count);
  plan.desc = desc;
  return status;
}
Seen seen_of(bp_plan* plan) {
  const std::lock_guard lock(seen_mutex);
  return seen()[plan];
}

// Returns a copy of `execution` without the fields that a newer host may have appended.
bp_execution known_part(const bp_execution& execution) {
  bp_execution copy = execution;
  copy.struct_size = sizeof(copy);
  return copy;
}
// Uses the sizes and strides from the plan's creation, and ignores the sizes and strides that the
// execution passes.
bp_status executes_creation_sizes(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                                  bp_error* error) {
  const Seen created = seen_of(plan);
  bp_op_desc desc = *execution->desc;
  desc.inputs = created.inputs.data();
  desc.outputs = created.outputs.data();
  bp_execution changed = known_part(*execution);
  changed.desc = &desc;
  return kHonest.plan_execute(device, stream, plan, &changed, error);
}
bp_status executes_creation_strides(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                                    bp_error* error) {
  const Seen created = seen_of(plan);
  bp_op_desc desc = *execution->desc;
  std::vector<bp_tensor_desc> inputs(desc.inputs, desc.inputs + desc.input_count);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    std::copy_n(created.inputs[i].strides, BP_MAX_RANK, inputs[i].strides);
  desc.inputs = inputs.data();
  bp_execution changed = known_part(*execution);
  changed.desc = &desc;
  return kHonest.plan_execute(device, stream, plan, &changed, error);
}
bp_status scalars_of_first_call(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                                bp_error* error) {
  bp_execution changed = known_part(*execution);
  std::vector<bp_operand> scalars;
  if (execution->desc->scalar_count != 0 && execution->scalars != nullptr) {
    const std::lock_guard lock(seen_mutex);
    std::vector<bp_operand>& first = seen()[plan].scalars;
    if (first.empty()) first.assign(execution->scalars, execution->scalars + execution->desc->scalar_count);
    scalars = first;
    changed.scalars = scalars.data();
  }
  return kHonest.plan_execute(device, stream, plan, &changed, error);
}
// The plan reads the caller's descriptor again during execution.
bp_status executes_kept_desc(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                             bp_error* error) {
  const bp_op_desc kept = *seen_of(plan).desc;
  bp_plan* again = nullptr;
  bp_plan_info info{};
  info.struct_size = sizeof(info);
  const bp_status status = kHonest.plan_create(device, &kept, &again, &info, error);
  if (status != BP_OK) return status;
  const bp_status done = kHonest.plan_execute(device, stream, again, execution, error);
  kHonest.plan_destroy(device, again);
  return done;
}
bp_status remembers_point(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                          bp_error* error) {
  const bp_status status = kHonest.plan_execute(device, stream, plan, execution, error);
  if (status != BP_OK) return status;
  const std::lock_guard lock(seen_mutex);
  Seen& executed = seen()[plan];
  executed.stream = &stream_of(stream);
  executed.point = executed.stream->point();
  return status;
}
// Aborts if an execution is pending, like a plugin that crashes because its plan_destroy frees a
// running kernel.
void destroy_while_pending(bp_device* device, bp_plan* plan) {
  if (const Seen executed = seen_of(plan);
      executed.stream != nullptr && !executed.stream->timeline()->reached(executed.point))
    std::abort();
  forget(device, plan);
}

template <auto kExecute>
constexpr Mutation with_memory() {
  return {.api = [](bp_device_api& api) {
    api.plan_create = remember;
    api.plan_destroy = forget;
    api.plan_execute = kExecute;
  }};
}

// ---- Status and properties

bp_status question_always_yes(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                              bp_error* error) {
  const bp_status status = kHonest.plan_create(device, desc, out, info, error);
  return out == nullptr && status == BP_UNSUPPORTED ? BP_OK : status;
}
bp_status question_without_facts(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                                 bp_error* error) {
  const bp_plan_info before = info == nullptr ? bp_plan_info{} : *info;
  const bp_status status = kHonest.plan_create(device, desc, out, info, error);
  if (out == nullptr && status == BP_OK) *info = before;
  return status;
}
// If no plan is requested, reports that the properties are unknown until a plan is created.
template <uint64_t kWorkspace>
bp_status question_of_unknown_facts(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                                    bp_error* error) {
  const bp_status status = kHonest.plan_create(device, desc, out, info, error);
  if (out == nullptr && status == BP_OK) {
    info->flags = BP_PLAN_FACTS_UNKNOWN;
    info->stage_inputs = info->stage_outputs = 0;
    info->workspace_bytes = kWorkspace;
  }
  return status;
}
// Reports that the properties of a created plan are unknown.
bp_status plan_of_unknown_facts(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                                bp_error* error) {
  const bp_status status = kHonest.plan_create(device, desc, out, info, error);
  if (status == BP_OK) info->flags |= BP_PLAN_FACTS_UNKNOWN;
  return status;
}
bool is_dense(const bp_tensor_desc& view) { return rules::is_dense(view); }
bp_status strided_refused_late(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                               bp_error* error) {
  const bp_op_desc& desc = *execution->desc;
  if (!std::all_of(desc.inputs, desc.inputs + desc.input_count, is_dense))
    return report(error, BP_UNSUPPORTED, "mutant: strides are not supported");
  return kHonest.plan_execute(device, stream, plan, execution, error);
}
bp_status create_waits(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info, bp_error* error) {
  const bp_status status = kHonest.plan_create(device, desc, out, info, error);
  if (HostStream* busy = last_stream(); busy != nullptr) (void)busy->wait(BP_WAIT_FOREVER);
  return status;
}
// Sets SIZED_WORKSPACE, although the slot plan_workspace is null.
bp_status sized_workspace(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                          bp_error* error) {
  const bp_status status = kHonest.plan_create(device, desc, out, info, error);
  if (status == BP_OK) info->flags |= BP_PLAN_SIZED_WORKSPACE;
  return status;
}
bp_status stages_beyond(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info, bp_error* error) {
  const bp_status status = kHonest.plan_create(device, desc, out, info, error);
  if (status == BP_OK) info->stage_inputs |= 1u << 31;
  return status;
}
bp_status copy_staged(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info, bp_error* error) {
  const bp_status status = kHonest.plan_create(device, desc, out, info, error);
  if (status == BP_OK && desc->op == BP_OP_COPY && !is_dense(desc->inputs[0])) info->stage_inputs |= 1u;
  return status;
}
// Does not request staging for an aliased input, so the plan executes in place.
bp_status in_place_hazard(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                          bp_error* error) {
  const bp_status status = kHonest.plan_create(device, desc, out, info, error);
  if (status == BP_OK && desc->outputs[0].alias != 0) info->stage_inputs = 0;
  return status;
}
// Writes the output before it reads the second input.
void output_first(const Call& call) {
  const View &out = call.out(), &a = call.in(0), &b = call.in(1);
  if (out.data != b.data || out.data == a.data) return honest_kernel(call)(call);
  restore(out, save(a));
  Altered altered(call);
  altered.in(0) = out;
  altered.run(honest_kernel(call));
}

}  // namespace

const Mutation defect::key_without_attributes = on_slot<&bp_device_api::plan_create, mutants::key_without_attributes>();
const Mutation defect::key_without_dtype = on_slot<&bp_device_api::plan_create, mutants::key_without_dtype>();
const Mutation defect::key_without_strides = with_memory<executes_creation_strides>();
const Mutation defect::any_size_lie = with_memory<executes_creation_sizes>();
const Mutation defect::scalars_of_first_call = with_memory<mutants::scalars_of_first_call>();
const Mutation defect::desc_kept = with_memory<executes_kept_desc>();
const Mutation defect::plan_freed_while_pending{.api = [](bp_device_api& api) {
  api.plan_create = remember;
  api.plan_execute = remembers_point;
  api.plan_destroy = destroy_while_pending;
}};
const Mutation defect::question_always_yes = on_slot<&bp_device_api::plan_create, mutants::question_always_yes>();
const Mutation defect::knows_once_made =
    on_slot<&bp_device_api::plan_create, mutants::question_of_unknown_facts<BP_WORKSPACE_UNKNOWN>>();
const Mutation defect::unknown_workspace_zero =
    on_slot<&bp_device_api::plan_create, mutants::question_of_unknown_facts<0>>();
const Mutation defect::plan_of_unknown_facts = on_slot<&bp_device_api::plan_create, mutants::plan_of_unknown_facts>();
const Mutation defect::question_without_facts = on_slot<&bp_device_api::plan_create, mutants::question_without_facts>();
const Mutation defect::strided_refused_late = on_slot<&bp_device_api::plan_execute, mutants::strided_refused_late>();
const Mutation defect::plan_create_waits{.api = [](bp_device_api& api) {
  api.plan_create = create_waits;
  keep_last_stream(api);
}};
const Mutation defect::sized_workspace_lie = on_slot<&bp_device_api::plan_create, sized_workspace>();
const Mutation defect::stage_mask_beyond = on_slot<&bp_device_api::plan_create, stages_beyond>();
const Mutation defect::copy_staged = on_slot<&bp_device_api::plan_create, mutants::copy_staged>();
const Mutation defect::in_place_hazard = on_slot<&bp_device_api::plan_create, mutants::in_place_hazard>();
const Mutation defect::second_input_clobbered{
    .kernels = [](Kernels& kernels) { replace_all(kernels, ops_of(BP_SHAPE_ELEMENTWISE, 2), output_first); }};

}  // namespace backplane::conformance::mutants
