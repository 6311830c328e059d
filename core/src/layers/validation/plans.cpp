// SPDX-License-Identifier: Apache-2.0
// Implements the slots of the layer `validation` for plans and executions.
#include "layers/validation/plans.hpp"

#include <cstring>

#include "base/op_table.hpp"
#include "dispatch/validate.hpp"
#include "layers/validation/descriptor.hpp"
#include "layers/validation/execution.hpp"
#include "layers/validation/memory.hpp"

namespace backplane::core::layers {

namespace {

CheckedPlan plan_of(const bp_op_desc& desc) {
  CheckedPlan plan;
  plan.desc = desc;
  if (desc.attributes != nullptr) {
    const auto* bytes = static_cast<const unsigned char*>(desc.attributes);
    plan.attributes.assign(bytes, bytes + *static_cast<const uint32_t*>(desc.attributes));
  }
  plan.views.assign(desc.inputs, desc.inputs + desc.input_count);
  plan.views.insert(plan.views.end(), desc.outputs, desc.outputs + desc.output_count);
  return plan;
}

void check_info(const Call& call, Outcome& outcome, const bp_op_desc& desc, const bp_plan_info& info) {
  const auto beyond = [](uint32_t mask, uint32_t count) { return count < 32 && mask >> count != 0; };
  const bool sized = (info.flags & BP_PLAN_SIZED_WORKSPACE) != 0;
  if (beyond(info.stage_inputs, desc.input_count) || beyond(info.stage_outputs, desc.output_count) ||
      (sized && ((info.flags & BP_PLAN_ANY_SIZE) == 0 || call.device().owner.has.plan_workspace == nullptr))) {
    call.blame(outcome, rule::kPlanInfo,
               "gave flags {:#x} and stages inputs {:#x} of {}, outputs {:#x} of {}; report it to the plugin's author",
               info.flags, info.stage_inputs, desc.input_count, info.stage_outputs, desc.output_count);
  }
}

bp_status plan_create(bp_device* handle, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info, bp_error* error) {
  if (out != nullptr) *out = nullptr;
  return checked(handle, Slot::plan_create, error, [&](Call& call) {
    unsigned char attributes[kMaxAttributeBytes];
    const bp_op_desc known = check_descriptor(call, desc, attributes);
    call.output(info, BP_PLAN_INFO_MIN_SIZE, "bp_plan_info");
    bp_plan_info facts = {};
    facts.struct_size = sizeof(facts);
    const auto forward = [&](const bp_device_api& next, bp_device* inner, bp_plan** created, bp_error* record) {
      return next.plan_create(inner, desc, created, &facts, record);
    };
    CheckedPlan state = plan_of(known);
    bp_plan* made = nullptr;
    Outcome outcome = out != nullptr ? create(call, Slot::plan_create, &made, forward)
                                     : call.forward(Slot::plan_create,
                                                    [&](const bp_device_api& next, bp_device* inner, bp_error* record) {
                                                      return forward(next, inner, nullptr, record);
                                                    });
    if (outcome.ok()) check_info(call, outcome, known, facts);
    if (outcome.status == BP_INVALID_ARGUMENT) {
      call.blame(
          outcome, rule::kCheckedDescriptor,
          "returned INVALID_ARGUMENT for a descriptor that keeps the rules; it counts as a refusal without this layer: "
          "return UNSUPPORTED, or report it to the plugin's author");
    }
    if (out != nullptr) {
      state.info = facts;
      *out = keep(call, outcome, made, std::move(state));
    } else {
      const std::lock_guard lock(call.device().mutex);
      call.note(outcome, nullptr);
    }
    if (outcome.ok() && !outcome.defect)
      write_output(info, facts, "plan_create", "bp_plan_info", BP_PLAN_INFO_MIN_SIZE);
    return outcome.write(error);
  });
}

void plan_destroy(bp_device* handle, bp_plan* plan) {
  checked_void(handle, "plan_destroy", [&](Call& call) {
    {
      const std::lock_guard lock(call.device().mutex);
      const CheckedPlan& state = call.object(plan, "plan");
      if (state.calls != 0) {
        call.refuse(rule::kCallRunning, "another call on plan {} runs; wait for it, then destroy", fmt::ptr(plan));
      }
      if (state.graphs != 0) {
        call.refuse(rule::kGraphUses, "a capture or graph uses plan {}; destroy the graph first", fmt::ptr(plan));
      }
      call.device().plans.end(plan);
    }
    call.next().plan_destroy(call.inner(), plan);
  });
}

// An execution whose descriptor has been compared with the descriptor of its plan.
struct Described {
  CheckedPlan* plan;
  bp_execution execution;
  bp_op_desc desc;
};

bool same_views(const CheckedPlan& plan, const bp_op_desc& desc) {
  const size_t view = sizeof(bp_tensor_desc);
  return desc.input_count == plan.desc.input_count && desc.output_count == plan.desc.output_count &&
         (desc.input_count == 0 ||
          (desc.inputs != nullptr && std::memcmp(desc.inputs, plan.views.data(), desc.input_count * view) == 0)) &&
         (desc.output_count == 0 ||
          (desc.outputs != nullptr &&
           std::memcmp(desc.outputs, plan.views.data() + desc.input_count, desc.output_count * view) == 0));
}

Described check_described(Call& call, const bp_plan* plan, const bp_execution* given, unsigned char* attributes) {
  Described made = {&call.object(plan, "plan"), call.input(given, BP_EXECUTION_MIN_SIZE, "bp_execution"), {}};
  if (made.execution.reserved != 0) {
    call.refuse(rule::kUnknownValue, "bp_execution.reserved is {:#x}; set it to 0", made.execution.reserved);
  }
  made.desc = check_descriptor(call, made.execution.desc, attributes);
  check_same_plan(call, *made.plan, made.desc, true);
  return made;
}

// Returns the size in bytes of the workspace that the plan needs for the sizes of `made.desc`. Returns 0 if
// plan_workspace fails. The caller must not hold the device's mutex.
uint64_t needed_workspace(const Call& call, bp_plan* handle, const Described& made) {
  const bp_plan_info& info = made.plan->info;
  if ((info.flags & BP_PLAN_SIZED_WORKSPACE) == 0 || same_views(*made.plan, made.desc)) return info.workspace_bytes;
  uint64_t bytes = 0;
  const Outcome queried =
      call.forward(Slot::plan_workspace, [&](const bp_device_api& next, bp_device* inner, bp_error* record) {
        return next.plan_workspace(inner, handle, made.execution.desc, &bytes, record);
      });
  return queried.ok() ? bytes : 0;
}

bp_status plan_execute(bp_device* handle, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                       bp_error* error) {
  return checked(handle, Slot::plan_execute, error, [&](Call& call) {
    unsigned char attributes[kMaxAttributeBytes];
    std::mutex& mutex = call.device().mutex;
    std::unique_lock lock(mutex);
    CheckedStream& line = call.occupy_stream(stream);
    const Described made = check_described(call, plan, execution, attributes);
    call.occupy(made.plan->calls);
    lock.unlock();
    const uint64_t workspace = needed_workspace(call, plan, made);
    lock.lock();
    const std::vector<CheckedBuffer*> buffers = check_execution(call, made.execution, made.desc, workspace);
    lock.unlock();
    Outcome outcome =
        call.forward(Slot::plan_execute, [&](const bp_device_api& next, bp_device* inner, bp_error* record) {
          return next.plan_execute(inner, stream, plan, execution, record);
        });
    lock.lock();
    call.note(outcome, &line);
    if (outcome.ok()) use_buffers(call, line, buffers, made.plan);
    return outcome.write(error);
  });
}

bp_status plan_workspace(bp_device* handle, bp_plan* plan, const bp_op_desc* desc, uint64_t* out_bytes,
                         bp_error* error) {
  return checked(handle, Slot::plan_workspace, error, [&](Call& call) {
    call.need(out_bytes, "out_bytes");
    unsigned char attributes[kMaxAttributeBytes];
    const bp_op_desc known = check_descriptor(call, desc, attributes);
    {
      const std::lock_guard lock(call.device().mutex);
      CheckedPlan& state = call.object(plan, "plan");
      if ((state.info.flags & BP_PLAN_SIZED_WORKSPACE) == 0) {
        call.refuse(rule::kSizedWorkspace, "plan {} has no BP_PLAN_SIZED_WORKSPACE; use its info.workspace_bytes",
                    fmt::ptr(plan));
      }
      check_same_plan(call, state, known, false);
      call.occupy(state.calls);
    }
    Outcome outcome =
        call.forward(Slot::plan_workspace, [&](const bp_device_api& next, bp_device* inner, bp_error* record) {
          return next.plan_workspace(inner, plan, desc, out_bytes, record);
        });
    const std::lock_guard lock(call.device().mutex);
    call.note(outcome, nullptr);
    return outcome.write(error);
  });
}

}  // namespace

void splice_plans(CheckedPlugin& plugin) {
  const bp_device_api& has = plugin.has;
  splice_slot(plugin.api.plan_create, has.plan_create, plan_create);
  splice_slot(plugin.api.plan_destroy, has.plan_destroy, plan_destroy);
  splice_slot(plugin.api.plan_execute, has.plan_execute, plan_execute);
  splice_slot(plugin.api.plan_workspace, has.plan_workspace, plan_workspace);
}

}  // namespace backplane::core::layers
