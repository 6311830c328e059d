// SPDX-License-Identifier: Apache-2.0
// Implements the slots of the layer `validation` for bp.native.
#include "layers/validation/native.hpp"

#include <bit>
#include <cstring>

#include "layers/validation/call.hpp"

namespace backplane::core::layers {

namespace {

// Returns the plugin's slot. Throws UNSUPPORTED if the device lacks the slot.
template <class Function>
Function native_slot(const Call& call, Slot slot, Function bp_native_api::*member) {
  const Function function = call.device().owner.inner_interface<bp_native_api>(call.inner()).*member;
  if (function == nullptr) throw Error(BP_UNSUPPORTED, "{}: the device has no {}", call.device().name, slot_name(slot));
  return function;
}

bool has_type(const bp_native_handle& handle) {
  return handle.type[0] != '\0' && std::memchr(handle.type, '\0', sizeof(handle.type)) != nullptr;
}

// Calls a slot that returns a handle. `forward` receives the handle that the plugin fills. `bytes`
// is the size of the buffer in bytes, or 0 for other objects.
template <class Forward>
bp_status handle_of(Call& call, Slot slot, CheckedStream* stream, uint64_t bytes, bp_native_handle* out,
                    bp_error* error, Forward&& forward) {
  bp_native_handle made = {};
  made.struct_size = sizeof(made);
  Outcome outcome = call.forward(
      slot, [&](const bp_device_api&, bp_device* inner, bp_error* record) { return forward(inner, &made, record); });
  if (outcome.ok() && (!has_type(made) || made.bytes != bytes)) {
    call.blame(outcome, rule::kNativeResult,
               "gave a handle of type \"{:.31}\" with {} bytes for an object of {}; report it to the plugin's author",
               made.type, made.bytes, bytes);
  }
  const std::lock_guard lock(call.device().mutex);
  call.note(outcome, stream);
  if (outcome.ok() && !outcome.defect)
    write_output(out, made, slot_name(slot), "bp_native_handle", BP_NATIVE_HANDLE_MIN_SIZE);
  return outcome.write(error);
}

void check_out(const Call& call, const bp_native_handle* out) {
  call.output(out, BP_NATIVE_HANDLE_MIN_SIZE, "bp_native_handle");
}

bp_status device_native(bp_device* handle, uint32_t index, bp_native_handle* out, bp_error* error) {
  return checked(handle, Slot::device_native, error, [&](Call& call) {
    check_out(call, out);
    const auto function = native_slot(call, Slot::device_native, &bp_native_api::device_native);
    return handle_of(call, Slot::device_native, nullptr, 0, out, error,
                     [&](bp_device* inner, bp_native_handle* made, bp_error* record) {
                       return function(inner, index, made, record);
                     });
  });
}

bp_status stream_native(bp_device* handle, bp_stream* stream, bp_native_handle* out, bp_error* error) {
  return checked(handle, Slot::stream_native, error, [&](Call& call) {
    check_out(call, out);
    CheckedStream* state = nullptr;
    {
      const std::lock_guard lock(call.device().mutex);
      state = &call.occupy_stream(stream);
    }
    const auto function = native_slot(call, Slot::stream_native, &bp_native_api::stream_native);
    return handle_of(call, Slot::stream_native, state, 0, out, error,
                     [&](bp_device* inner, bp_native_handle* made, bp_error* record) {
                       return function(inner, stream, made, record);
                     });
  });
}

bp_status buffer_native(bp_device* handle, bp_buffer* buffer, bp_native_handle* out, bp_error* error) {
  return checked(handle, Slot::buffer_native, error, [&](Call& call) {
    check_out(call, out);
    uint64_t bytes = 0;
    {
      const std::lock_guard lock(call.device().mutex);
      CheckedBuffer& state = call.object(buffer, "buffer");
      call.occupy(state.calls);
      bytes = state.bytes;
    }
    const auto function = native_slot(call, Slot::buffer_native, &bp_native_api::buffer_native);
    return handle_of(call, Slot::buffer_native, nullptr, bytes, out, error,
                     [&](bp_device* inner, bp_native_handle* made, bp_error* record) {
                       return function(inner, buffer, made, record);
                     });
  });
}

bp_status event_native(bp_device* handle, bp_event* event, bp_native_handle* out, bp_error* error) {
  return checked(handle, Slot::event_native, error, [&](Call& call) {
    check_out(call, out);
    {
      const std::lock_guard lock(call.device().mutex);
      CheckedEvent& state = call.object(event, "event");
      call.occupy(state.calls);
      if (state.recording()) {
        call.refuse(rule::kEventOneRecord, "another call records event {}; request the handle afterwards",
                    fmt::ptr(event));
      }
    }
    const auto function = native_slot(call, Slot::event_native, &bp_native_api::event_native);
    return handle_of(call, Slot::event_native, nullptr, 0, out, error,
                     [&](bp_device* inner, bp_native_handle* made, bp_error* record) {
                       return function(inner, event, made, record);
                     });
  });
}

// Returns a copy of a handle that the caller wraps. Refuses an illegal handle.
bp_native_handle given_handle(const Call& call, const bp_native_handle* native, bool of_buffer) {
  const bp_native_handle known = call.input(native, BP_NATIVE_HANDLE_MIN_SIZE, "bp_native_handle");
  if ((known.flags & ~BP_NATIVE_ADDRESS) != 0) {
    call.refuse(rule::kUnknownValue, "flags {:#x} has unknown bits; use 0 or BP_NATIVE_ADDRESS", known.flags);
  }
  if (!has_type(known) || (of_buffer && known.bytes == 0)) {
    call.refuse(rule::kNativeHandle, "a handle with {} bytes {} a type is given; pass a type and at least 1 byte",
                known.bytes, has_type(known) ? "and" : "without");
  }
  return known;
}

bp_status stream_wrap(bp_device* handle, const bp_native_handle* native, bp_stream** out, bp_error* error) {
  if (out != nullptr) *out = nullptr;
  return checked(handle, Slot::stream_wrap, error, [&](Call& call) {
    call.need(out, "out");
    (void)given_handle(call, native, false);
    const auto function = native_slot(call, Slot::stream_wrap, &bp_native_api::stream_wrap);
    CheckedDevice& device = call.device();
    CheckedStream state;
    {
      const std::lock_guard lock(device.mutex);
      state.line = device.ledger.open_line();
    }
    bp_stream* made = nullptr;
    Outcome outcome = create(call, Slot::stream_wrap, &made,
                             [&](const bp_device_api&, bp_device* inner, bp_stream** created, bp_error* record) {
                               return function(inner, native, created, record);
                             });
    *out = keep(call, outcome, made, state);
    if (*out == nullptr) {
      const std::lock_guard lock(device.mutex);
      device.ledger.close_line(state.line);
    }
    return outcome.write(error);
  });
}

bp_status buffer_wrap(bp_device* handle, const bp_native_handle* native, uint32_t* out_kind, bp_buffer** out,
                      bp_error* error) {
  if (out != nullptr) *out = nullptr;
  return checked(handle, Slot::buffer_wrap, error, [&](Call& call) {
    call.need(out, "out");
    call.need(out_kind, "out_kind");
    const bp_native_handle known = given_handle(call, native, true);
    const auto function = native_slot(call, Slot::buffer_wrap, &bp_native_api::buffer_wrap);
    bp_buffer* made = nullptr;
    uint32_t kind = UINT32_MAX;
    Outcome outcome = create(call, Slot::buffer_wrap, &made,
                             [&](const bp_device_api&, bp_device* inner, bp_buffer** created, bp_error* record) {
                               return function(inner, native, &kind, created, record);
                             });
    if (outcome.ok() && (kind >= BP_MEMORY_KINDS || (call.device().info.memory_kinds >> kind & 1u) == 0)) {
      call.blame(outcome, rule::kNativeKind, "gave a buffer of kind {}; report it to the plugin's author", kind);
    }
    CheckedBuffer state;
    state.kind = kind;
    state.bytes = known.bytes;
    const uint64_t base = (known.flags & BP_NATIVE_ADDRESS) != 0 ? known.value : call.device().info.alignment;
    const uint64_t start = base + known.offset;
    state.alignment = start & (~start + 1);
    state.imported = true;
    *out = keep(call, outcome, made, std::move(state));
    if (*out != nullptr) *out_kind = kind;
    return outcome.write(error);
  });
}

}  // namespace

void splice_native(CheckedPlugin& plugin) {
  bp_native_api& native = plugin.native;
  native.device_native = device_native;
  native.stream_native = stream_native;
  native.buffer_native = buffer_native;
  native.event_native = event_native;
  native.stream_wrap = stream_wrap;
  native.buffer_wrap = buffer_wrap;
}

}  // namespace backplane::core::layers
