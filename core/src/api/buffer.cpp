// SPDX-License-Identifier: Apache-2.0
// Implements the C functions for buffers.
#include <backplane/backplane.h>

#include "api/boundary.hpp"
#include "base/structs.hpp"
#include "loading/plugin_call.hpp"
#include "memory/address_map.hpp"
#include "memory/buffer.hpp"
#include "streams/stream.hpp"

using namespace backplane::core;

bp_status bph_buffer_create(bph_device* device, const bph_buffer_desc* desc, bph_buffer** out, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_buffer_create";
    start_output(out, function);
    Device& owner = require<Device>(device, function);
    bph_buffer_desc copy;
    const bool same = desc != nullptr && desc->struct_size == sizeof(bph_buffer_desc);
    if (!same) [[unlikely]]
      copy = read_input(desc, BPH_BUFFER_DESC_MIN_SIZE, function, "bph_buffer_desc");
    const bph_buffer_desc& known = same ? *desc : copy;
    Stream* stream = known.stream == nullptr ? nullptr : &require<Stream>(known.stream, function);
    *out = reinterpret_cast<bph_buffer*>(Buffer::create(owner, known, stream).public_handle);
  });
}

bp_status bph_buffer_import(bph_device* device, const bph_import_desc* desc, bph_buffer** out, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_buffer_import";
    start_output(out, function);
    Device& owner = require<Device>(device, function);
    const bph_import_desc known = read_input(desc, BPH_IMPORT_DESC_MIN_SIZE, function, "bph_import_desc");
    Stream* stream = known.stream == nullptr ? nullptr : &require<Stream>(known.stream, function);
    *out = reinterpret_cast<bph_buffer*>(Buffer::import(owner, known, stream).public_handle);
  });
}

void bph_buffer_release(bph_buffer* buffer) {
  auto* object = find_handle<Buffer>(buffer);
  if (object != nullptr) Buffer::end(*object, handle_value(buffer));
}

bp_status bph_buffer_record(bph_buffer* buffer, bph_stream* stream, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_buffer_record";
    require<Buffer>(buffer, function).record(require<Stream>(stream, function));
  });
}

bp_status bph_buffer_map(bph_buffer* buffer, void** out, bp_error* error) {
  return guard(error, [&] {
    start_output(out, "bph_buffer_map");
    *out = require<Buffer>(buffer, "bph_buffer_map").map();
  });
}

bp_status bph_buffer_get_info(bph_buffer* buffer, bph_buffer_info* out, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_buffer_get_info";
    Buffer& object = require<Buffer>(buffer, function);
    const Buffer::Address address = object.address();
    bph_buffer_info info = {};
    info.address = address.value;
    info.flags = address.flags | (object.read_only ? BPH_BUFFER_READ_ONLY : 0u);
    info.kind = object.kind;
    info.bytes = object.bytes;
    info.plugin_offset = object.plugin_offset;
    info.plugin_buffer = object.plugin_buffer;
    write_output(out, info, function, "bph_buffer_info", BPH_BUFFER_INFO_MIN_SIZE);
  });
}

bp_status bph_buffer_from_address(uint64_t address, bph_device** out_device, bph_buffer** out_buffer,
                                  uint64_t* out_offset, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_buffer_from_address";
    start_output(out_device, function);
    start_output(out_buffer, function);
    start_output(out_offset, function);
    const AddressedBuffer found = AddressMap::instance().find(address);
    if (found.buffer == 0) {
      throw Error(BP_INVALID_ARGUMENT,
                  "{}: {:#x} lies in no living buffer whose address was requested, that was mapped or imported",
                  function, address);
    }
    *out_device = reinterpret_cast<bph_device*>(found.device);
    *out_buffer = reinterpret_cast<bph_buffer*>(found.buffer);
    *out_offset = found.offset;
  });
}
