// SPDX-License-Identifier: Apache-2.0
// One call through the layer `validation`: the device and slot that error messages name, the
// objects that the call uses, and its outcome.
#pragma once

#include <fmt/format.h>

#include <array>
#include <new>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/float_state.hpp"
#include "base/structs.hpp"
#include "layers/slots.hpp"
#include "layers/validation/checked.hpp"
#include "layers/validation/rules.hpp"

namespace backplane::core::layers {

// Makes an error with the message "validation: who: slot: text [id]". Truncates the text so that
// the id fits.
template <class... Args>
Error rule_error(bp_status status, const Rule& rule, std::string_view who, const char* slot,
                 fmt::format_string<Args...> format, Args&&... args) noexcept {
  char text[340];
  text[0] = '\0';
  try {
    const auto end = fmt::format_to_n(text, sizeof(text) - 1, format, std::forward<Args>(args)...);
    *end.out = '\0';
  } catch (...) {
    text[0] = '\0';
  }
  return Error(status, "validation: {:.80}: {}: {} [{}]", who, slot, static_cast<const char*>(text), rule.id);
}

// The status and error record that the plugin returned, and the defect that the layer found in
// them.
struct Outcome {
  bp_status status = BP_OK;  // the status that the plugin returned
  bp_error record = fresh_error();
  std::optional<Error> defect;

  bool ok() const noexcept { return status == BP_OK; }
  // Copies the error to the caller's record and returns the status of the layer's call.
  bp_status write(bp_error* error) const noexcept;
};

// Checks the rules that apply to every slot. `control` is the value of the floating-point control
// register before the call.
void check_outcome(Outcome& outcome, std::string_view who, Slot slot, uint64_t control) noexcept;

// Calls a plugin slot that can fail. `forward` receives the error record that the plugin fills.
template <class Forward>
Outcome invoke(std::string_view who, Slot slot, Forward&& forward) {
  Outcome outcome;
  const uint64_t control = float_control();
  try {
    outcome.status = forward(&outcome.record);
  } catch (...) {
    outcome.status = BP_INTERNAL;
    outcome.defect = rule_error(BP_INTERNAL, rule::kNoException, who, slot_name(slot),
                                "an exception left the plugin; report it to the plugin's author");
  }
  check_outcome(outcome, who, slot, control);
  return outcome;
}

inline const char* noun_of(const bp_buffer*) { return "buffer"; }
inline const char* noun_of(const bp_stream*) { return "stream"; }
inline const char* noun_of(const bp_event*) { return "event"; }
inline const char* noun_of(const bp_plan*) { return "plan"; }
inline const char* noun_of(const bp_graph*) { return "graph"; }
inline const char* noun_of(const bp_semaphore*) { return "semaphore"; }
inline const char* noun_of(const bp_pack*) { return "pack"; }

class Call {
 public:
  // Throws if `handle` is not an open device, or if the process has forked since the device was
  // opened.
  Call(const bp_device* handle, const char* slot);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call();

  CheckedDevice& device() const noexcept { return *device_; }
  const bp_device_api& next() const noexcept { return device_->next; }
  bp_device* inner() const noexcept { return device_->inner; }

  template <class... Args>
  [[noreturn]] void refuse(const Rule& rule, fmt::format_string<Args...> format, Args&&... args) const {
    throw rule_error(BP_INVALID_ARGUMENT, rule, device_->name, slot_, format, std::forward<Args>(args)...);
  }
  // Records a defect of the plugin, unless one is already recorded.
  template <class... Args>
  void blame(Outcome& outcome, const Rule& rule, fmt::format_string<Args...> format, Args&&... args) const {
    if (!outcome.defect)
      outcome.defect = rule_error(BP_INTERNAL, rule, device_->name, slot_, format, std::forward<Args>(args)...);
  }
  // Converts an Error of `body` to a refusal that cites `rule`.
  template <class Body>
  void under(const Rule& rule, Body&& body) const {
    try {
      body();
    } catch (const Error& error) {
      refuse(rule, "{}", error.what());
    }
  }
  void need(const void* pointer, const char* what) const {
    if (pointer == nullptr) refuse(rule::kNullPointer, "{} is null; pass one", what);
  }
  // Returns a copy of an input struct. Refuses an illegal struct_size.
  template <class T>
  T input(const T* given, size_t min_size, const char* type) const {
    need(given, type);
    T copy{};
    under(rule::kInputStruct, [&] { copy = read_input(given, min_size, "input", type); });
    return copy;
  }
  template <class T>
  void output(const T* given, size_t min_size, const char* type) const {
    need(given, type);
    if (given->struct_size < min_size) {
      refuse(rule::kOutputStruct, "{}.struct_size is {}, less than its minimum of {}; set it to sizeof({})", type,
             given->struct_size, min_size, type);
    }
  }
  // Returns the state of the object that `handle` identifies. The caller holds the device's mutex.
  template <class Handle>
  auto& object(const Handle* handle, const char* role) const {
    auto& objects = device_->of(handle);
    auto* found = objects.find(handle);
    if (found == nullptr) refuse_handle(handle, role, objects.ended(handle));
    return *found;
  }
  // Marks an object as in use until the call ends. The caller holds the device's mutex.
  void occupy(uint32_t& calls) {
    if (few_count_ < few_.size()) {
      few_[few_count_++] = &calls;
    } else {
      occupied_.push_back(&calls);
    }
    ++calls;
  }
  CheckedStream& occupy_stream(const bp_stream* handle);

  // Calls the plugin's slot. The caller must not hold the device's mutex.
  template <class Forward>
  Outcome forward(Slot slot, Forward&& body) const {
    return invoke(device_->name, slot, [&](bp_error* record) { return body(next(), inner(), record); });
  }
  // Updates the state after a call on `stream`, which may be null. The caller holds the device's
  // mutex.
  void note(Outcome& outcome, CheckedStream* stream) const;

 private:
  template <class Handle>
  [[noreturn]] void refuse_handle(const Handle* handle, const char* role, bool ended) const {
    const char* noun = noun_of(handle);
    if (handle == nullptr) refuse(rule::kNullPointer, "the {} is null; pass one", role);
    if (ended)
      refuse(rule::kEndedHandle, "{} {} was destroyed earlier; do not use a handle after its destruction", role,
             fmt::ptr(handle));
    if (LiveDevices::instance().holds(handle, *device_)) {
      refuse(rule::kOtherDevice, "{} {} belongs to another device; use one of this device", role, fmt::ptr(handle));
    }
    refuse(rule::kUnknownHandle, "{} {} is not a {} of this device; pass a handle that {}_create returned", role,
           fmt::ptr(handle), noun, noun);
  }

  std::shared_ptr<CheckedDevice> device_;
  const char* slot_;
  // The `calls` counters that this call has incremented. The fixed size avoids an allocation in
  // waits.
  std::array<uint32_t*, 4> few_ = {};
  size_t few_count_ = 0;
  std::vector<uint32_t*> occupied_;  // incremented counters that do not fit into `few_`
};

// Implements a slot that can fail. `body(call)` returns the status, or throws to refuse the call.
template <class Body>
bp_status checked(const bp_device* handle, Slot slot, bp_error* error, Body&& body) noexcept {
  bp_status status = BP_OK;
  const bp_status refused = guard(error, [&] {
    Call call(handle, slot_name(slot));
    status = body(call);
  });
  return refused != BP_OK ? refused : status;
}

// Implements a slot without a status. `body(call)` throws to refuse the call, and the refusal is
// logged.
template <class Body>
void checked_void(const bp_device* handle, const char* slot, Body&& body) noexcept {
  bp_error record = fresh_error();
  const bp_status refused = guard(&record, [&] {
    Call call(handle, slot);
    body(call);
  });
  if (refused != BP_OK) LiveDevices::instance().log(handle, record.message);
}

// Calls a create slot through `body(next, inner, made, record)`, where `made` is the layer's output
// pointer.
template <class Handle, class Body>
Outcome create(const Call& call, Slot slot, Handle** made, Body&& body) {
  // No plugin returns this value. If `*made` still has this value after the call, the plugin did
  // not write its output.
  auto* const untouched = reinterpret_cast<Handle*>(made);
  *made = untouched;
  Outcome outcome = call.forward(slot, [&](const bp_device_api& next, bp_device* inner, bp_error* record) {
    return body(next, inner, made, record);
  });
  if (outcome.ok() && (*made == nullptr || *made == untouched)) {
    call.blame(outcome, rule::kSuccessNull, "returned OK without a result; report it to the plugin's author");
    *made = nullptr;
  } else if (!outcome.ok()) {
    if (*made != nullptr) {
      call.blame(outcome, rule::kFailureNull,
                 "failed with status {} and left a result that is not null; report it to the plugin's author",
                 outcome.status);
    }
    *made = nullptr;
  }
  return outcome;
}

inline void destroy(const Call& call, bp_buffer* made) { call.next().buffer_destroy(call.inner(), made); }
inline void destroy(const Call& call, bp_stream* made) { call.next().stream_destroy(call.inner(), made); }
inline void destroy(const Call& call, bp_event* made) { call.next().event_destroy(call.inner(), made); }
inline void destroy(const Call& call, bp_plan* made) { call.next().plan_destroy(call.inner(), made); }
inline void destroy(const Call& call, bp_semaphore* made) {
  const auto table = call.device().owner.inner_interface<bp_external_api>(call.inner());
  if (table.semaphore_destroy != nullptr) table.semaphore_destroy(call.inner(), made);
}

inline void destroy(const Call& call, bp_pack* made) {
  const auto table = call.device().owner.inner_interface<bp_pack_api>(call.inner());
  if (table.pack_destroy != nullptr) table.pack_destroy(call.inner(), made);
}

inline void destroy(const Call& call, bp_graph* made) {
  call.device().owner.inner_interface<bp_graph_api>(call.inner()).graph_destroy(call.inner(), made);
}

// Registers the object that a create slot made. If `outcome` has a defect, or if there is no memory to register the
// object, returns null and destroys the object. Does not destroy the object if its handle is the handle of another live
// object.
template <class Handle, class State>
Handle* keep(const Call& call, Outcome& outcome, Handle* made, State state) {
  CheckedDevice& device = call.device();
  bool known = false;
  {
    const std::lock_guard lock(device.mutex);
    call.note(outcome, nullptr);
    if (made == nullptr) return nullptr;
    auto& objects = device.of(made);
    known = objects.find(made) != nullptr;
    if (known) {
      call.blame(outcome, rule::kDistinctHandles,
                 "returned {} {}, which is already alive; report it to the plugin's author", noun_of(made),
                 fmt::ptr(made));
    }
    if (!outcome.defect) {
      try {
        objects.add(made, std::move(state));
        return made;
      } catch (const std::bad_alloc&) {
        outcome.defect =
            Error(BP_OUT_OF_MEMORY, "validation: {}: host memory is exhausted; free some and call again", device.name);
      }
    }
  }
  if (!known) destroy(call, made);
  return nullptr;
}

}  // namespace backplane::core::layers
