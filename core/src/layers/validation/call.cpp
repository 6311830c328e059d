// SPDX-License-Identifier: Apache-2.0
// The checks that the layer `validation` applies to every call.
#include "layers/validation/call.hpp"

#include <backplane/backplane.h>

#include <cstring>

namespace backplane::core::layers {

bp_status Outcome::write(bp_error* error) const noexcept {
  if (defect) return defect->write(error);
  if (record.status != BP_OK && error != nullptr && error->struct_size >= BP_ERROR_MIN_SIZE) {
    const uint32_t size = error->struct_size;
    const size_t shared = std::min<size_t>(size, sizeof(record));
    std::memcpy(error, &record, shared);
    std::memset(reinterpret_cast<char*>(error) + shared, 0, size - shared);
    error->struct_size = size;
  }
  return status;
}

void check_outcome(Outcome& outcome, std::string_view who, Slot slot, uint64_t control) noexcept {
  const auto blame = [&](const Rule& rule, auto format, auto... args) {
    if (!outcome.defect) outcome.defect = rule_error(BP_INTERNAL, rule, who, slot_name(slot), format, args...);
  };
  const uint64_t after = float_control();
  if (after != control) {
    set_float_control(control);
    blame(rule::kFloatControl,
          FMT_STRING("the thread's floating-point control was {:#x} before and {:#x} after; it is restored, report it "
                     "to the plugin's author"),
          control, after);
  }
  const bp_status status = outcome.status;
  const bp_error& record = outcome.record;
  if (known_status(status) != status) {
    blame(rule::kKnownStatus, FMT_STRING("returned {}, which is not a status; report it to the plugin's author"),
          status);
  } else if (slot == Slot::plan_execute && status == BP_UNSUPPORTED) {
    blame(rule::kTruthfulPlan,
          FMT_STRING(
              "returned UNSUPPORTED for a plan that plan_create returned; report it to the plugin's author: {:.120}"),
          static_cast<const char*>(record.message));
  } else if (!states(slot, status)) {
    blame(rule::kStatedStatus,
          FMT_STRING("returned {}, which its comment does not state; report it to the plugin's author: {:.120}"),
          bph_status_name(status), static_cast<const char*>(record.message));
  }
  if (outcome.defect) return;
  const bool silent = status == BP_OK || status == BP_NOT_READY || status == BP_TIMEOUT;
  const size_t length = strnlen(record.message, sizeof(record.message));
  const bool untouched = record.status == BP_OK && record.message_length == 0 && length == 0;
  const bool filled = record.status == status && length != 0 && length < sizeof(record.message) &&
                      record.message_length == length && record.struct_size == sizeof(record);
  if (silent ? !untouched : !filled) {
    blame(rule::kErrorRecord,
          FMT_STRING("returned {} with a record of status {} and a message of {} bytes, {} stated; report it to the "
                     "plugin's author"),
          bph_status_name(status), record.status, length, record.message_length);
  }
}

Call::Call(const bp_device* handle, const char* slot) : slot_(slot) {
  if (handle == nullptr) {
    throw rule_error(BP_INVALID_ARGUMENT, rule::kNullPointer, "?", slot, "the device is null; pass one");
  }
  device_ = LiveDevices::instance().find(handle);
  if (device_ == nullptr) {
    throw rule_error(BP_INVALID_ARGUMENT, rule::kDeviceHandle, "?", slot,
                     "{} is not an open device: it was closed, or device_open did not return it", fmt::ptr(handle));
  }
  if (device_->process != getpid()) {
    refuse(rule::kForkedChild, "the device was opened before fork(); a child opens its own");
  }
  device_->calls.fetch_add(1, std::memory_order_relaxed);
}

Call::~Call() {
  if (few_count_ != 0) {
    const std::lock_guard lock(device_->mutex);
    for (size_t i = 0; i < few_count_; ++i) --*few_[i];
    for (uint32_t* calls : occupied_) --*calls;
  }
  device_->calls.fetch_sub(1, std::memory_order_relaxed);
}

CheckedStream& Call::occupy_stream(const bp_stream* handle) {
  CheckedStream& stream = object(handle, "stream");
  if (stream.calls != 0) {
    refuse(rule::kStreamOneCall, "another call on stream {} is running; make one call on a stream at a time",
           fmt::ptr(handle));
  }
  if (stream.captures()) stream.graph->expect();
  occupy(stream.calls);
  return stream;
}

void Call::note(Outcome& outcome, CheckedStream* stream) const {
  if (outcome.status == BP_DEVICE_LOST) device_->ledger.lose();
  if (stream == nullptr) return;
  if (stream->failed && (outcome.status == BP_OK || outcome.status == BP_OUT_OF_MEMORY)) {
    blame(outcome, rule::kStickyFailure,
          "returned {} on a stream that has already failed; a failure is permanent: report it to the plugin's author",
          outcome.ok() ? "OK" : "OUT_OF_MEMORY");
  }
  if (outcome.status == BP_EXECUTION_FAILED) stream->failed = true;
}

}  // namespace backplane::core::layers
