// SPDX-License-Identifier: Apache-2.0
// Implements the slots of the layer `validation` for bp.external.
#include "layers/validation/external.hpp"

#include <unistd.h>

#include <cstring>
#include <string_view>

#include "layers/validation/memory.hpp"

namespace backplane::core::layers {

namespace {

// Returns the plugin's slot. Throws UNSUPPORTED if the device lacks the slot.
template <class Function>
Function external_slot(const Call& call, Slot slot, Function bp_external_api::*member) {
  const Function function = call.device().owner.inner_interface<bp_external_api>(call.inner()).*member;
  if (function == nullptr) throw Error(BP_UNSUPPORTED, "{}: the device has no {}", call.device().name, slot_name(slot));
  return function;
}

void check_type(const Call& call, const char* type) {
  const size_t length = type == nullptr ? 0 : strnlen(type, sizeof(bp_external_type::name));
  if (length == 0 || length == sizeof(bp_external_type::name)) {
    call.refuse(rule::kExternalType, "the type is null, empty or longer than 31 characters; pass a type's name");
  }
}

// Returns a copy of a handle that the caller imports. Refuses an illegal handle.
bp_external_handle given_external(const Call& call, const bp_external_handle* handle, bool of_memory) {
  const bp_external_handle known = call.input(handle, BP_EXTERNAL_HANDLE_MIN_SIZE, "bp_external_handle");
  if (known.reserved != 0) call.refuse(rule::kUnknownValue, "reserved is {:#x}; pass 0", known.reserved);
  const bool typed = known.type[0] != '\0' && std::memchr(known.type, '\0', sizeof(known.type)) != nullptr;
  if (!typed || (of_memory && known.bytes == 0)) {
    call.refuse(rule::kExternalHandle, "a handle with {} bytes {} a type is given; pass a type and at least 1 byte",
                known.bytes, typed ? "and" : "without");
  }
  return known;
}

bp_status external_type(bp_device* handle, uint32_t index, bp_external_type* out, bp_error* error) {
  return checked(handle, Slot::external_type, error, [&](Call& call) {
    call.output(out, BP_EXTERNAL_TYPE_MIN_SIZE, "bp_external_type");
    const auto function = external_slot(call, Slot::external_type, &bp_external_api::external_type);
    Outcome outcome = call.forward(Slot::external_type, [&](const bp_device_api&, bp_device* inner, bp_error* record) {
      return function(inner, index, out, record);
    });
    const std::lock_guard lock(call.device().mutex);
    call.note(outcome, nullptr);
    return outcome.write(error);
  });
}

bp_status buffer_create_external(bp_device* handle, const bp_buffer_desc* desc, const char* type, bp_buffer** out,
                                 bp_error* error) {
  if (out != nullptr) *out = nullptr;
  return checked(handle, Slot::buffer_create_external, error, [&](Call& call) {
    call.need(out, "out");
    check_type(call, type);
    CheckedBuffer state = described_buffer(call, desc);
    const auto function = external_slot(call, Slot::buffer_create_external, &bp_external_api::buffer_create_external);
    bp_buffer* made = nullptr;
    Outcome outcome = create(call, Slot::buffer_create_external, &made,
                             [&](const bp_device_api&, bp_device* inner, bp_buffer** created, bp_error* record) {
                               return function(inner, desc, type, created, record);
                             });
    *out = keep(call, outcome, made, std::move(state));
    return outcome.write(error);
  });
}

// Calls a slot that exports `object`. `bytes` is the size of the object in bytes.
template <class Handle>
bp_status export_object(Call& call, Slot slot, Handle* object, uint64_t bytes, const char* type,
                        bp_status (*bp_external_api::*member)(bp_device*, Handle*, const char*, bp_external_handle*,
                                                              bp_error*),
                        bp_external_handle* out, bp_error* error) {
  const auto function = external_slot(call, slot, member);
  Outcome outcome = call.forward(slot, [&](const bp_device_api&, bp_device* inner, bp_error* record) {
    return function(inner, object, type, out, record);
  });
  if (outcome.ok() && (std::strncmp(out->type, type, sizeof(out->type)) != 0 || out->bytes != bytes)) {
    call.blame(outcome, rule::kExternalResult,
               "gave a handle of type \"{:.31}\" with {} bytes for an object of type {} with {} bytes; {}",
               std::string_view(out->type, strnlen(out->type, sizeof(out->type))), out->bytes, type, bytes,
               "report it to the plugin's author");
    if (out->fd >= 0) ::close(static_cast<int>(out->fd));  // the caller receives no handle
    out->fd = -1;
  }
  const std::lock_guard lock(call.device().mutex);
  call.note(outcome, nullptr);
  return outcome.write(error);
}

bp_status buffer_export(bp_device* handle, bp_buffer* buffer, const char* type, bp_external_handle* out,
                        bp_error* error) {
  return checked(handle, Slot::buffer_export, error, [&](Call& call) {
    call.output(out, BP_EXTERNAL_HANDLE_MIN_SIZE, "bp_external_handle");
    check_type(call, type);
    uint64_t bytes = 0;
    {
      const std::lock_guard lock(call.device().mutex);
      CheckedBuffer& state = call.object(buffer, "buffer");
      call.occupy(state.calls);
      bytes = state.bytes;
    }
    return export_object(call, Slot::buffer_export, buffer, bytes, type, &bp_external_api::buffer_export, out, error);
  });
}

bp_status buffer_import(bp_device* handle, const bp_external_handle* given, uint32_t* out_kind, bp_buffer** out,
                        bp_error* error) {
  if (out != nullptr) *out = nullptr;
  return checked(handle, Slot::buffer_import, error, [&](Call& call) {
    call.need(out, "out");
    call.need(out_kind, "out_kind");
    const bp_external_handle known = given_external(call, given, true);
    const auto function = external_slot(call, Slot::buffer_import, &bp_external_api::buffer_import);
    bp_buffer* made = nullptr;
    uint32_t kind = UINT32_MAX;
    Outcome outcome = create(call, Slot::buffer_import, &made,
                             [&](const bp_device_api&, bp_device* inner, bp_buffer** created, bp_error* record) {
                               return function(inner, given, &kind, created, record);
                             });
    if (outcome.ok() && (kind >= BP_MEMORY_KINDS || (call.device().info.memory_kinds >> kind & 1u) == 0)) {
      call.blame(outcome, rule::kForeignKind, "gave a buffer of kind {}; report it to the plugin's author", kind);
    }
    CheckedBuffer state;
    state.kind = kind;
    state.bytes = known.bytes;
    const uint64_t start = call.device().info.alignment + known.offset;
    state.alignment = start & (~start + 1);
    state.imported = true;
    *out = keep(call, outcome, made, std::move(state));
    if (*out != nullptr) *out_kind = kind;
    return outcome.write(error);
  });
}

bp_status semaphore_create(bp_device* handle, const char* type, uint64_t value, bp_semaphore** out, bp_error* error) {
  if (out != nullptr) *out = nullptr;
  return checked(handle, Slot::semaphore_create, error, [&](Call& call) {
    call.need(out, "out");
    check_type(call, type);
    const auto function = external_slot(call, Slot::semaphore_create, &bp_external_api::semaphore_create);
    bp_semaphore* made = nullptr;
    Outcome outcome = create(call, Slot::semaphore_create, &made,
                             [&](const bp_device_api&, bp_device* inner, bp_semaphore** created, bp_error* record) {
                               return function(inner, type, value, created, record);
                             });
    *out = keep(call, outcome, made, CheckedSemaphore{});
    return outcome.write(error);
  });
}

bp_status semaphore_export(bp_device* handle, bp_semaphore* semaphore, const char* type, bp_external_handle* out,
                           bp_error* error) {
  return checked(handle, Slot::semaphore_export, error, [&](Call& call) {
    call.output(out, BP_EXTERNAL_HANDLE_MIN_SIZE, "bp_external_handle");
    check_type(call, type);
    {
      const std::lock_guard lock(call.device().mutex);
      call.occupy(call.object(semaphore, "semaphore").calls);
    }
    return export_object(call, Slot::semaphore_export, semaphore, 0, type, &bp_external_api::semaphore_export, out,
                         error);
  });
}

bp_status semaphore_import(bp_device* handle, const bp_external_handle* given, bp_semaphore** out, bp_error* error) {
  if (out != nullptr) *out = nullptr;
  return checked(handle, Slot::semaphore_import, error, [&](Call& call) {
    call.need(out, "out");
    (void)given_external(call, given, false);
    const auto function = external_slot(call, Slot::semaphore_import, &bp_external_api::semaphore_import);
    bp_semaphore* made = nullptr;
    Outcome outcome = create(call, Slot::semaphore_import, &made,
                             [&](const bp_device_api&, bp_device* inner, bp_semaphore** created, bp_error* record) {
                               return function(inner, given, created, record);
                             });
    *out = keep(call, outcome, made, CheckedSemaphore{});
    return outcome.write(error);
  });
}

// Checks and forwards semaphore_signal and semaphore_wait. `stream` may be null for a signal.
bp_status use_semaphore(bp_device* handle, Slot slot, bp_stream* stream, bp_semaphore* semaphore, uint64_t value,
                        decltype(bp_external_api::semaphore_signal) bp_external_api::*member, bp_error* error) {
  return checked(handle, slot, error, [&](Call& call) {
    CheckedStream* line = nullptr;
    CheckedSemaphore* state = nullptr;
    {
      const std::lock_guard lock(call.device().mutex);
      state = &call.object(semaphore, "semaphore");
      call.occupy(state->calls);
      state->uses.reserve(state->uses.size() + state->calls);  // each call adds at most one point
      if (stream != nullptr || slot == Slot::semaphore_wait) line = &call.occupy_stream(stream);
    }
    const auto function = external_slot(call, slot, member);
    Outcome outcome = call.forward(slot, [&](const bp_device_api&, bp_device* inner, bp_error* record) {
      return function(inner, stream, semaphore, value, record);
    });
    const std::lock_guard lock(call.device().mutex);
    call.note(outcome, line);
    if (outcome.ok() && line != nullptr) raise(state->uses, call.device().ledger.enqueue(line->line));
    return outcome.write(error);
  });
}

bp_status semaphore_signal(bp_device* handle, bp_stream* stream, bp_semaphore* semaphore, uint64_t value,
                           bp_error* error) {
  return use_semaphore(handle, Slot::semaphore_signal, stream, semaphore, value, &bp_external_api::semaphore_signal,
                       error);
}

bp_status semaphore_wait(bp_device* handle, bp_stream* stream, bp_semaphore* semaphore, uint64_t value,
                         bp_error* error) {
  return use_semaphore(handle, Slot::semaphore_wait, stream, semaphore, value, &bp_external_api::semaphore_wait, error);
}

void semaphore_destroy(bp_device* handle, bp_semaphore* semaphore) {
  checked_void(handle, "semaphore_destroy", [&](Call& call) {
    CheckedDevice& device = call.device();
    {
      const std::lock_guard lock(device.mutex);
      CheckedSemaphore& state = call.object(semaphore, "semaphore");
      if (state.calls != 0 || device.ledger.pending(state.uses)) {
        call.refuse(rule::kSemaphorePending,
                    "work that uses semaphore {} is pending; wait for its streams, then destroy", fmt::ptr(semaphore));
      }
      device.semaphores.end(semaphore);
    }
    destroy(call, semaphore);
  });
}

}  // namespace

void splice_external(CheckedPlugin& plugin) {
  bp_external_api& external = plugin.external;
  external.external_type = external_type;
  external.buffer_create_external = buffer_create_external;
  external.buffer_export = buffer_export;
  external.buffer_import = buffer_import;
  external.semaphore_create = semaphore_create;
  external.semaphore_export = semaphore_export;
  external.semaphore_import = semaphore_import;
  external.semaphore_signal = semaphore_signal;
  external.semaphore_wait = semaphore_wait;
  external.semaphore_destroy = semaphore_destroy;
}

}  // namespace backplane::core::layers
