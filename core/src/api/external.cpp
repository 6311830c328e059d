// SPDX-License-Identifier: Apache-2.0
// Implements the C functions for memory and semaphores that other processes, devices and plugins
// share.
#include "loading/external.hpp"

#include <backplane/backplane.h>

#include "api/boundary.hpp"
#include "base/structs.hpp"
#include "memory/buffer.hpp"
#include "streams/semaphore.hpp"
#include "streams/stream.hpp"

using namespace backplane::core;

namespace {

bp_external_handle read_handle(const bp_external_handle* given, const char* function) {
  const bp_external_handle known = read_input(given, BP_EXTERNAL_HANDLE_MIN_SIZE, function, "bp_external_handle");
  if (known.reserved == 0) return known;
  throw Error(BP_UNSUPPORTED, "{}: bp_external_handle.reserved is {:#x}; pass 0", function, known.reserved);
}

void require_output(const bp_external_handle* out, const char* function) {
  if (out == nullptr) throw Error(BP_INVALID_ARGUMENT, "{}: out is null; pass where the result goes", function);
  check_struct_size(out->struct_size, BP_EXTERNAL_HANDLE_MIN_SIZE, function, "bp_external_handle");
}

}  // namespace

bp_status bph_device_external_type(bph_device* device, uint32_t index, bp_external_type* out, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_device_external_type";
    const Device& object = require<Device>(device, function);
    const auto slot = external_slot(object, function, "external_type", &bp_external_api::external_type);
    bp_external_type type = {};
    type.struct_size = sizeof(type);
    bp_error reported = fresh_error();
    check(object, "external_type", slot(object.handle, index, &type, &reported), reported);
    write_output(out, type, function, "bp_external_type", BP_EXTERNAL_TYPE_MIN_SIZE);
  });
}

bp_status bph_buffer_create_external(bph_device* device, const bph_buffer_desc* desc, const char* type,
                                     bph_buffer** out, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_buffer_create_external";
    start_output(out, function);
    Device& owner = require<Device>(device, function);
    const bph_buffer_desc known = read_input(desc, BPH_BUFFER_DESC_MIN_SIZE, function, "bph_buffer_desc");
    require_type(function, type);
    Stream* stream = known.stream == nullptr ? nullptr : &require<Stream>(known.stream, function);
    *out = reinterpret_cast<bph_buffer*>(Buffer::create_external(owner, known, type, stream).public_handle);
  });
}

bp_status bph_buffer_export(bph_buffer* buffer, const char* type, bp_external_handle* out, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_buffer_export";
    Buffer& object = require<Buffer>(buffer, function);
    require_type(function, type);
    require_output(out, function);  // checked before the plugin creates a file descriptor
    write_output(out, object.exported(type), function, "bp_external_handle", BP_EXTERNAL_HANDLE_MIN_SIZE);
  });
}

bp_status bph_buffer_import_external(bph_device* device, const bp_external_handle* handle, bph_stream* stream,
                                     bph_buffer** out, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_buffer_import_external";
    start_output(out, function);
    Device& owner = require<Device>(device, function);
    Stream* user = stream == nullptr ? nullptr : &require<Stream>(stream, function);
    *out = reinterpret_cast<bph_buffer*>(
        Buffer::import_external(owner, read_handle(handle, function), user).public_handle);
  });
}

bp_status bph_semaphore_create(bph_device* device, const char* type, uint64_t value, bph_semaphore** out,
                               bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_semaphore_create";
    start_output(out, function);
    Device& owner = require<Device>(device, function);
    require_type(function, type);
    hand_out(Semaphore::create(Ref<Device>(&owner), type, value), out);
  });
}

bp_status bph_semaphore_import(bph_device* device, const bp_external_handle* handle, bph_semaphore** out,
                               bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_semaphore_import";
    start_output(out, function);
    Device& owner = require<Device>(device, function);
    hand_out(Semaphore::import(Ref<Device>(&owner), read_handle(handle, function)), out);
  });
}

bp_status bph_semaphore_export(bph_semaphore* semaphore, const char* type, bp_external_handle* out, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_semaphore_export";
    const Semaphore& object = require<Semaphore>(semaphore, function);
    require_type(function, type);
    require_output(out, function);
    write_output(out, object.exported(type), function, "bp_external_handle", BP_EXTERNAL_HANDLE_MIN_SIZE);
  });
}

void bph_semaphore_release(bph_semaphore* semaphore) { end_handle<Semaphore>(semaphore); }

bp_status bph_semaphore_signal(bph_semaphore* semaphore, bph_stream* stream, uint64_t value, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_semaphore_signal";
    Stream* signaller = stream == nullptr ? nullptr : &require<Stream>(stream, function);
    require<Semaphore>(semaphore, function).signal(signaller, value);
  });
}

bp_status bph_semaphore_wait(bph_semaphore* semaphore, bph_stream* stream, uint64_t value, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_semaphore_wait";
    require<Semaphore>(semaphore, function).make_wait(require<Stream>(stream, function), value);
  });
}
