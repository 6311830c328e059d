// SPDX-License-Identifier: Apache-2.0
// Defects in statuses, error records and results.
#include <tuple>

#include "mutation.hpp"

namespace backplane::conformance::mutants {
namespace {

// A function that changes the status and the error record of a call before the caller receives them.
using Finish = bp_status (*)(bp_status status, bp_error* error);
// Runs the slot kSlot, and then kFinish.
template <auto kSlot, Finish kFinish>
struct Finished;
template <class... A, bp_status (*bp_device_api::*kSlot)(A...), Finish kFinish>
struct Finished<kSlot, kFinish> {
  static bp_status run(A... arguments) {
    const bp_status status = (kHonest.*kSlot)(arguments...);
    return kFinish(status, std::get<sizeof...(A) - 1>(std::tie(arguments...)));
  }
};

template <Finish kFinish>
constexpr Mutation everywhere() {
  return {.api = [](bp_device_api& api) {
    api.memory_info = Finished<&bp_device_api::memory_info, kFinish>::run;
    api.buffer_create = Finished<&bp_device_api::buffer_create, kFinish>::run;
    api.buffer_map = Finished<&bp_device_api::buffer_map, kFinish>::run;
    api.stream_wait = Finished<&bp_device_api::stream_wait, kFinish>::run;
    api.event_create = Finished<&bp_device_api::event_create, kFinish>::run;
    api.event_wait = Finished<&bp_device_api::event_wait, kFinish>::run;
    api.event_elapsed = Finished<&bp_device_api::event_elapsed, kFinish>::run;
    api.plan_create = Finished<&bp_device_api::plan_create, kFinish>::run;
    api.plan_execute = Finished<&bp_device_api::plan_execute, kFinish>::run;
  }};
}

bool holds_record(const bp_error* error) { return error != nullptr && error->struct_size >= BP_ERROR_MIN_SIZE; }
bool is_failure(bp_status status) { return status != BP_OK && status != BP_NOT_READY && status != BP_TIMEOUT; }

bp_status swallow(bp_status status, bp_error*) { return is_failure(status) ? BP_OK : status; }
bp_status without_message(bp_status status, bp_error* error) {
  if (is_failure(status) && holds_record(error)) error->message[0] = '\0', error->message_length = 0;
  return status;
}
bp_status unterminated(bp_status status, bp_error* error) {
  if (!is_failure(status) || !holds_record(error)) return status;
  for (std::size_t i = error->message_length; i < sizeof(error->message); ++i) error->message[i] = '.';
  return status;
}
bp_status long_length(bp_status status, bp_error* error) {
  if (is_failure(status) && holds_record(error)) ++error->message_length;
  return status;
}
bp_status other_status(bp_status status, bp_error* error) {
  if (is_failure(status) && holds_record(error)) error->status = BP_INTERNAL;
  return status;
}
bp_status filled_on_success(bp_status status, bp_error* error) {
  if (status == BP_OK && holds_record(error))
    error->status = BP_OK, error->message_length = 0, error->message[0] = '\0';
  return status;
}
bp_status filled_on_timeout(bp_status status, bp_error* error) {
  if (status == BP_TIMEOUT && holds_record(error)) {
    report(error, BP_INTERNAL, "mutant: the wait ran out");
    error->status = BP_TIMEOUT;
  }
  return status;
}
bp_status small_record_written(bp_status status, bp_error* error) {
  if (is_failure(status) && error != nullptr && error->struct_size >= 8) error->status = status;
  return status;
}
bp_status broken_utf8(bp_status status, bp_error* error) {
  if (is_failure(status) && holds_record(error)) error->message[0] = '\xC3', error->message[1] = 'x';
  return status;
}
bp_status always_internal(bp_status status, bp_error* error) {
  if (!is_failure(status)) return status;
  if (holds_record(error)) error->status = BP_INTERNAL;
  return BP_INTERNAL;
}

// Leaves the error record unchanged.
bp_status create_unrecorded(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error*) {
  return kHonest.buffer_create(device, desc, out, nullptr);
}

bp_status null_plan(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info, bp_error* error) {
  const bp_status status = kHonest.plan_create(device, desc, out, info, error);
  return status == BP_UNSUPPORTED ? BP_OK : status;
}
bp_status dangling_buffer(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error) {
  const bp_status status = kHonest.buffer_create(device, desc, out, error);
  if (status != BP_OK && out != nullptr) *out = reinterpret_cast<bp_buffer*>(device);
  return status;
}
bp_status dangling_plan(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info, bp_error* error) {
  const bp_status status = kHonest.plan_create(device, desc, out, info, error);
  if (status != BP_OK && out != nullptr) *out = reinterpret_cast<bp_plan*>(device);
  return status;
}
bp_status op_missing(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info, bp_error* error) {
  const bp_status status = kHonest.plan_create(device, desc, out, info, error);
  if (status != BP_OK && holds_record(error)) error->op = 0;
  return status;
}

}  // namespace

const Mutation defect::error_swallowed = everywhere<swallow>();
const Mutation defect::error_without_message = everywhere<without_message>();
const Mutation defect::message_unterminated = everywhere<unterminated>();
const Mutation defect::message_length_wrong = everywhere<long_length>();
const Mutation defect::message_not_utf8 = everywhere<broken_utf8>();
const Mutation defect::error_status_differs = everywhere<other_status>();
const Mutation defect::error_filled_on_success = everywhere<filled_on_success>();
const Mutation defect::error_filled_on_timeout = everywhere<filled_on_timeout>();
const Mutation defect::small_error_written = everywhere<small_record_written>();
const Mutation defect::every_failure_internal = everywhere<always_internal>();
const Mutation defect::error_not_filled = on_slot<&bp_device_api::buffer_create, create_unrecorded>();
const Mutation defect::success_without_plan = on_slot<&bp_device_api::plan_create, null_plan>();
const Mutation defect::buffer_left_on_failure = on_slot<&bp_device_api::buffer_create, dangling_buffer>();
const Mutation defect::plan_left_on_failure = on_slot<&bp_device_api::plan_create, dangling_plan>();
const Mutation defect::error_without_op = on_slot<&bp_device_api::plan_create, op_missing>();

}  // namespace backplane::conformance::mutants
