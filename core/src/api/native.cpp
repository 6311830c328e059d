// SPDX-License-Identifier: Apache-2.0
// Implements the C functions that return the driver's handles.
#include <backplane/backplane.h>

#include "api/boundary.hpp"
#include "base/structs.hpp"
#include "loading/native.hpp"
#include "memory/buffer.hpp"
#include "streams/event.hpp"

using namespace backplane::core;

namespace {

void give(bp_native_handle* out, const bp_native_handle& handle, const char* function) {
  write_output(out, handle, function, "bp_native_handle", BP_NATIVE_HANDLE_MIN_SIZE);
}

}  // namespace

bp_status bph_device_get_native(bph_device* device, uint32_t index, bp_native_handle* out, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_device_get_native";
    const Device& object = require<Device>(device, function);
    give(out, native_handle(object, function, "device_native", &bp_native_api::device_native, index), function);
  });
}

bp_status bph_stream_get_native(bph_stream* stream, bp_native_handle* out, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_stream_get_native";
    give(out, require<Stream>(stream, function).native(), function);
  });
}

bp_status bph_buffer_get_native(bph_buffer* buffer, bp_native_handle* out, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_buffer_get_native";
    const Buffer& object = require<Buffer>(buffer, function);
    if (object.plugin_buffer == nullptr) {
      throw Error(BP_UNSUPPORTED, "{}: the buffer has 0 bytes and no memory; pass a buffer with bytes", function);
    }
    bp_native_handle handle =
        native_handle(*object.device, function, "buffer_native", &bp_native_api::buffer_native, object.plugin_buffer);
    handle.offset += object.plugin_offset;
    handle.bytes = object.bytes;
    give(out, handle, function);
  });
}

bp_status bph_event_get_native(bph_event* event, bp_native_handle* out, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_event_get_native";
    const Event& object = require<Event>(event, function);
    object.require_point(function);
    give(out, native_handle(*object.device, function, "event_native", &bp_native_api::event_native, object.handle),
         function);
  });
}
