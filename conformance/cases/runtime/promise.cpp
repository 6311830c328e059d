// SPDX-License-Identifier: Apache-2.0
// plan_create must not refuse a descriptor that it has accepted before. During a run, the harness
// records every result of plan_create (harness/plan_support.hpp). So these cases only repeat the
// queries, before and after events that might change the results.
#include <chrono>

#include "cases/catalogue.hpp"
#include "cases/negative/refusals.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"
#include "cases/support/health_check.hpp"
#include "cases/support/op_desc.hpp"
#include "cases/support/threads.hpp"
#include "harness/plan_support.hpp"

namespace backplane::conformance {

namespace {

// Queries plan_create. If `make` is set, creates a plan and destroys it. Fails the case unless the status is OK,
// UNSUPPORTED or OUT_OF_MEMORY.
void check_support(Device& device, OpDesc desc, bool make) {
  ErrorRecord error;
  bp_plan_info info = {};
  info.struct_size = sizeof(info);
  bp_plan* plan = nullptr;
  const bp_status status = device->plan_create(device.get(), &desc.get(), make ? &plan : nullptr, &info, &error);
  expect_status(status, error, "plan_create", {BP_OK, BP_UNSUPPORTED, BP_OUT_OF_MEMORY});
  if (status == BP_OK && plan != nullptr) device->plan_destroy(device.get(), plan);
}

// Queries each primitive in each dtype, and repeats the queries of other cases. Also creates plans
// in the usual dtype until one second has passed.
void check_all_support(Device& device) {
  constexpr auto patience = std::chrono::seconds(1);
  const auto start = std::chrono::steady_clock::now();
  for (const bph_op_info& op : primitives()) {
    for (const uint32_t dtype : dtypes_of(op.dtypes)) check_support(device, sample(op, dtype), false);
    if (std::chrono::steady_clock::now() - start < patience) check_support(device, sample(op, usual_dtype(op)), true);
  }
  PlanSupport::query_all(device.get());
}

void after_an_instance_ended(Context& context) {
  check_all_support(context.device());
  {
    Plugin other(context.path());
    Device device(other, context.device_index());
    check_all_support(device);
  }
  check_all_support(context.device());
  Plugin later(context.path());
  Device device(later, context.device_index());
  check_all_support(device);
}

// Creates many plans of different sizes. A time limit ends the loop, because plans of some plugins
// are slow to create.
void after_many_plans(Context& context) {
  constexpr int64_t most = 8192;
  constexpr auto patience = std::chrono::seconds(2);
  Device& device = context.device();
  check_all_support(device);
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < most && std::chrono::steady_clock::now() - start < patience; ++i)
    check_support(device, elementwise(i % 2 == 0 ? BP_OP_ADD : BP_OP_NEG, BP_F32, 1 + i), true);
  check_all_support(device);
}

void after_refusals(Context& context) {
  Device& device = context.device();
  check_all_support(device);
  for (std::vector<Refusal>& refusals : std::array{all_refusals(), operator_refusals()})
    for (Refusal& refusal : refusals) {
      if (refusal.slot == "query" || !refusal.extension.empty()) continue;
      ErrorRecord error;
      refusal.call(context, &error);
    }
  check_all_support(device);
}

void after_the_largest_buffers(Context& context) {
  Device& device = context.device();
  check_all_support(device);
  bp_buffer_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.bytes = device.info().max_buffer_bytes;
  for (int i = 0; i < 2; ++i) {  // tests the maximum legal size and an impossible size
    bp_buffer* buffer = nullptr;
    ErrorRecord error;
    if (device->buffer_create(device.get(), &desc, &buffer, &error) == BP_OK)
      device->buffer_destroy(device.get(), buffer);
    desc.bytes = UINT64_MAX / 2;
  }
  check_all_support(device);
}

void support_by_threads(Context& context) {
  Device& device = context.device();
  check_all_support(device);
  in_threads(context, 4, [&](unsigned) { check_all_support(device); });
}

// Repeats all queries in a new process, where the results must be the same as in other processes.
void in_a_fresh_process(Context& context) {
  PlanSupport::query_all(context.device().get());
  check_all_support(context.device());
}

}  // namespace

void add_promise_cases(Catalogue& catalogue) {
  const auto add = [&](const char* what, void (*run)(Context&)) {
    add_case(catalogue, fmt::format("runtime.promise.{}", what), {"BP-PLAN-021"}, run);
  };
  add("after_an_instance_ended", after_an_instance_ended);
  add("after_many_plans", after_many_plans);
  add("after_refusals", after_refusals);
  add("after_the_largest_buffers", after_the_largest_buffers);
  catalogue.back().alone = true;
  add("support_by_threads", support_by_threads);
  // Uses eight processes, to detect a defect that affects half of all processes.
  for (int number = 1; number <= 8; ++number) {
    add(fmt::format("in_fresh_process_{}", number).c_str(), in_a_fresh_process);
    catalogue.back().fresh = true;
  }
}

}  // namespace backplane::conformance
