// SPDX-License-Identifier: Apache-2.0
// Defects in concurrent calls, streams or threads: shared workspaces or temporaries, missing waits,
// late reads.
#include <atomic>
#include <map>

#include "mutation.hpp"
#include "runtime.hpp"
#include "views.hpp"

namespace backplane::conformance::mutants {
namespace {

constexpr uint64_t kWorkspace = 64;

// Replaces reduce_sum on f32 with a kernel that has a workspace.
template <Kernel kRun>
constexpr Mutation with_workspace() {
  return {.kernels = [](Kernels& kernels) {
    kernels.add(BP_OP_REDUCE_SUM, BP_F32, BP_F32, KernelSpec{.run = kRun, .workspace_bytes = kWorkspace});
  }};
}

void add_to_first(const View& out, float value) {
  if (out.elements() != 0) *out.as<float>() += value;
}

// Adds the sum that an earlier call left in the workspace to the first element of the output.
void stale_workspace(const Call& call) {
  constexpr uint64_t kUsed = 0x5AFE5AFE5AFE5AFEu;
  struct State {
    uint64_t used;
    float sum;
  } state;
  std::memcpy(&state, call.workspace, sizeof(state));
  honest_kernel(call)(call);
  const float sum = call.out().elements() == 0 ? 0 : *call.out().as<float>();
  if (state.used == kUsed) add_to_first(call.out(), state.sum);
  state = {kUsed, sum};
  std::memcpy(call.workspace, &state, sizeof(state));
}
void workspace_expected_zero(const Call& call) {
  honest_kernel(call)(call);
  const bool dirty =
      std::any_of(call.workspace, call.workspace + kWorkspace, [](std::byte b) { return b != std::byte{0}; });
  if (dirty) add_to_first(call.out(), 1.0f);
}
void workspace_overrun(const Call& call) {
  honest_kernel(call)(call);
  std::memset(call.workspace, 0xEE, kWorkspace + 4);
}

// All streams share one temporary.
void static_temporary(const Call& call) {
  static std::byte temporary[1 << 16];
  run_in_temporary(call, honest_kernel(call), temporary);
}

// The first execution prepares shared data. Concurrent executions use the shared data before it is
// ready.
void used_unprepared(const Call& call) {
  static std::atomic<bool> begun{false}, ready{false};
  if (!begun.exchange(true)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ready = true;
  }
  honest_kernel(call)(call);
  if (!ready) add_to_first(call.out(), 1.0f);
}

bp_status no_wait(bp_device*, bp_stream* stream, bp_event*, bp_error*) {
  (void)stream;
  return BP_OK;
}

// Enqueues the copy, and copies the data again 1 ms after the stream has completed its current
// work.
bp_status copied_again_later(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, const void* src,
                             uint64_t bytes, bp_error* error) {
  const bp_status status = kHonest.copy_in(device, stream, dst, dst_offset, src, bytes, error);
  if (status == BP_OK && bytes != 0) {
    later(stream_of(stream), [=, to = buffer_of(dst).span.address + dst_offset] { std::memcpy(to, src, bytes); });
  }
  return status;
}

// plan_execute stores the operands per plan and reads them back 50 microseconds later. A concurrent
// execution of the same plan overwrites the stored operands.
struct Operands {
  std::vector<bp_operand> inputs, outputs;
};
bp_status operands_in_plan(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                           bp_error* error) {
  static std::mutex mutex;
  static std::map<bp_plan*, Operands> kept;
  const bp_op_desc& desc = *execution->desc;
  const auto locked = [&] { return std::lock_guard(mutex); };
  {
    const auto lock = locked();
    kept[plan] = {{execution->inputs, execution->inputs + desc.input_count},
                  {execution->outputs, execution->outputs + desc.output_count}};
  }
  std::this_thread::sleep_for(std::chrono::microseconds(50));
  Operands operands;
  {
    const auto lock = locked();
    operands = kept[plan];
  }
  bp_execution changed = *execution;
  changed.inputs = operands.inputs.data();
  changed.outputs = operands.outputs.data();
  return kHonest.plan_execute(device, stream, plan, &changed, error);
}

}  // namespace

const Mutation defect::stale_workspace = with_workspace<mutants::stale_workspace>();
const Mutation defect::workspace_expected_zero = with_workspace<mutants::workspace_expected_zero>();
const Mutation defect::workspace_overrun = with_workspace<mutants::workspace_overrun>();
const Mutation defect::static_temporary = on_op<mutants::static_temporary, BP_OP_MUL, BP_DTYPE_BIT(BP_F32)>();
const Mutation defect::used_unprepared = on_op<mutants::used_unprepared, BP_OP_MUL, BP_DTYPE_BIT(BP_F32)>();
const Mutation defect::event_wait_missing{.api = [](bp_device_api& api) { api.stream_wait_event = no_wait; }};
const Mutation defect::host_memory_read_late{.api = [](bp_device_api& api) {
  api.copy_in = copied_again_later;
  wait_for_later(api);
}};
const Mutation defect::operands_in_plan{
    .api = [](bp_device_api& api) { api.plan_execute = mutants::operands_in_plan; }};

}  // namespace backplane::conformance::mutants
