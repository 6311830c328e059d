// SPDX-License-Identifier: Apache-2.0
// Finds missing required slots, and replaces missing optional slots by stubs.
#include "loading/plugin_table.hpp"

#include "base/error.hpp"

namespace backplane::core {

namespace {

bp_status not_implemented(bp_error* error, const char* slot) noexcept {
  return Error(BP_UNSUPPORTED, "{}: not implemented by the plugin; it is optional", slot).write(error);
}

bp_status no_buffer_map(bp_device*, bp_buffer*, void** out, bp_error* error) {
  *out = nullptr;
  return not_implemented(error, "buffer_map");
}
bp_status no_event_elapsed(bp_device*, bp_event*, bp_event*, int64_t* out, bp_error* error) {
  *out = 0;
  return not_implemented(error, "event_elapsed");
}
bp_status no_copy_in(bp_device*, bp_stream*, bp_buffer*, uint64_t, const void*, uint64_t, bp_error* error) {
  return not_implemented(error, "copy_in");
}
bp_status no_copy_out(bp_device*, bp_stream*, void*, bp_buffer*, uint64_t, uint64_t, bp_error* error) {
  return not_implemented(error, "copy_out");
}
bp_status no_buffer_address(bp_device*, bp_buffer*, uint64_t* out, bp_error* error) {
  *out = 0;
  return not_implemented(error, "buffer_address");
}
bp_status no_plan_workspace(bp_device*, bp_plan*, const bp_op_desc*, uint64_t* out, bp_error* error) {
  *out = 0;
  return not_implemented(error, "plan_workspace");
}

}  // namespace

const char* missing_slot(const bp_plugin& known) noexcept {
#define BP_REQUIRE(slot) \
  if (known.slot == nullptr) return #slot
  BP_REQUIRE(device_api);
  BP_REQUIRE(device_count);
  BP_REQUIRE(device_info);
  BP_REQUIRE(device_open);
  BP_REQUIRE(shutdown);
  return nullptr;
}

const char* missing_slot(const bp_device_api& known) noexcept {
  BP_REQUIRE(close);
  BP_REQUIRE(memory_info);
  BP_REQUIRE(buffer_create);
  BP_REQUIRE(buffer_destroy);
  BP_REQUIRE(stream_create);
  BP_REQUIRE(stream_destroy);
  BP_REQUIRE(stream_wait);
  BP_REQUIRE(event_create);
  BP_REQUIRE(event_destroy);
  BP_REQUIRE(event_record);
  BP_REQUIRE(stream_wait_event);
  BP_REQUIRE(event_wait);
  BP_REQUIRE(copy);
  BP_REQUIRE(plan_create);
  BP_REQUIRE(plan_destroy);
  BP_REQUIRE(plan_execute);
#undef BP_REQUIRE
  return nullptr;
}

bp_device_api complete_table(const bp_device_api& known) noexcept {
  bp_device_api copy = known;
  if (copy.buffer_map == nullptr) copy.buffer_map = no_buffer_map;
  if (copy.event_elapsed == nullptr) copy.event_elapsed = no_event_elapsed;
  if (copy.copy_in == nullptr) copy.copy_in = no_copy_in;
  if (copy.copy_out == nullptr) copy.copy_out = no_copy_out;
  if (copy.buffer_address == nullptr) copy.buffer_address = no_buffer_address;
  if (copy.plan_workspace == nullptr) copy.plan_workspace = no_plan_workspace;
  return copy;
}

}  // namespace backplane::core
