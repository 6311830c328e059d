// SPDX-License-Identifier: Apache-2.0
// Defects that depend on earlier calls in the process: withdrawn support, and first uses that fail.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "mutation.hpp"
#include "views.hpp"

namespace backplane::conformance::mutants {
namespace {

// ---- Withdrawn support

// A plan_create slot that returns `kStatus` if `kDeclines` returns true.
template <bool (*kDeclines)(const bp_op_desc& desc, bool makes), bp_status kStatus = BP_UNSUPPORTED>
bp_status declining(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info, bp_error* error) {
  const bp_status status = kHonest.plan_create(device, desc, out, info, error);
  if (status != BP_OK || !kDeclines(*desc, out != nullptr)) return status;
  if (out != nullptr) kHonest.plan_destroy(device, std::exchange(*out, nullptr));
  return report(error, kStatus, "mutant: there is no kernel for this any more", desc->op);
}

std::atomic<bool> an_instance_ended{false};
void shutdown_ends_floor(const bp_plugin* plugin) {
  honest_plugin().shutdown(plugin);
  an_instance_ended = true;
}
bool floor_after_an_end(const bp_op_desc& desc, bool) { return an_instance_ended && desc.op == BP_OP_FLOOR; }

bool floor_after_many(const bp_op_desc& desc, bool makes) {
  static std::atomic<uint32_t> made{0};
  constexpr uint32_t kRoom = 6000;
  return (makes ? made.fetch_add(1) : made.load()) > kRoom && desc.op == BP_OP_FLOOR;
}

std::atomic<bool> was_exhausted{false};
bp_status notes_exhaustion(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error) {
  const bp_status status = kHonest.buffer_create(device, desc, out, error);
  if (status == BP_OUT_OF_MEMORY) was_exhausted = true;
  return status;
}
bool bf16_after_exhaustion(const bp_op_desc& desc, bool) {
  const auto is_bf16 = [](const bp_tensor_desc& view) { return view.dtype == BP_BF16; };
  return was_exhausted && (std::any_of(desc.inputs, desc.inputs + desc.input_count, is_bf16) ||
                           std::any_of(desc.outputs, desc.outputs + desc.output_count, is_bf16));
}

// Declines the operator `floor` in processes with an odd pid, like a plugin whose kernel cache file
// is locked.
bool floor_in_odd_processes(const bp_op_desc& desc, bool) { return desc.op == BP_OP_FLOOR && getpid() % 2 != 0; }

// ---- First uses

// Initialises data lazily without a lock, and aborts if a second caller arrives meanwhile.
void prepare_without_lock() {
  static std::atomic<bool> ready{false};
  static std::atomic<int> inside{0};
  if (ready) return;
  if (inside.fetch_add(1) != 0 && !ready) std::abort();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  ready = true;
}
bp_status create_unlocked(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                          bp_error* error) {
  if (out != nullptr) prepare_without_lock();
  return kHonest.plan_create(device, desc, out, info, error);
}
bp_status query_unlocked(const bp_host* host, const bp_plugin** out, bp_error* error) {
  prepare_without_lock();
  return query_honest(host, out, error);
}
bp_status open_unlocked(const bp_plugin* plugin, uint32_t index, const bp_device_desc* desc, bp_device** out,
                        bp_error* error) {
  prepare_without_lock();
  return honest_plugin().device_open(plugin, index, desc, out, error);
}
bp_status stream_unlocked(bp_device* device, const bp_stream_desc* desc, bp_stream** out, bp_error* error) {
  prepare_without_lock();
  return kHonest.stream_create(device, desc, out, error);
}

// The first execution in a process fills a table. Concurrent executions read the table before it is
// complete.
void neg_of_half_a_table(const Call& call) {
  static std::atomic<int> state{0};
  int untouched = 0;
  honest_kernel(call)(call);
  if (state.compare_exchange_strong(untouched, 1)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    state = 2;
  } else if (state == 1) {
    each_value<float>(call.out(), [](float) { return 0.0f; });
  }
}

// The operator `exp` reads a table that only the creation of a plan for `log` fills.
std::atomic<bool> has_table{false};
bp_status log_fills_table(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                          bp_error* error) {
  const bp_status status = kHonest.plan_create(device, desc, out, info, error);
  if (status == BP_OK && desc->op == BP_OP_LOG) has_table = true;
  return status;
}
void exp_by_table(const Call& call) {
  honest_kernel(call)(call);
  if (!has_table) each_value<float>(call.out(), [](float) { return 0.0f; });
}

}  // namespace

const Mutation defect::declines_after_shutdown{
    .plugin = [](bp_plugin& plugin) { plugin.shutdown = shutdown_ends_floor; },
    .api = [](bp_device_api& api) { api.plan_create = declining<floor_after_an_end>; }};
const Mutation defect::declines_after_many = on_slot<&bp_device_api::plan_create, declining<floor_after_many>>();
const Mutation defect::declines_after_exhaustion{.api = [](bp_device_api& api) {
  api.plan_create = declining<bf16_after_exhaustion>;
  api.buffer_create = notes_exhaustion;
}};
const Mutation defect::declines_by_process = on_slot<&bp_device_api::plan_create, declining<floor_in_odd_processes>>();
const Mutation defect::fails_by_process =
    on_slot<&bp_device_api::plan_create, declining<floor_in_odd_processes, BP_INTERNAL>>();
const Mutation defect::first_plans_crash = on_slot<&bp_device_api::plan_create, create_unlocked>();
const Mutation defect::first_streams_crash = on_slot<&bp_device_api::stream_create, stream_unlocked>();
const Mutation defect::first_queries_crash{.query = query_unlocked};
const Mutation defect::first_opens_crash{.plugin = [](bp_plugin& plugin) { plugin.device_open = open_unlocked; }};
const Mutation defect::first_runs_wrong = on_op<neg_of_half_a_table, BP_OP_NEG, BP_DTYPE_BIT(BP_F32)>();
const Mutation defect::works_after_another{
    .kernels = [](Kernels& kernels) { replace(kernels, BP_OP_EXP, exp_by_table, BP_DTYPE_BIT(BP_F32)); },
    .api = [](bp_device_api& api) { api.plan_create = log_fills_table; }};

}  // namespace backplane::conformance::mutants
