// SPDX-License-Identifier: Apache-2.0
// Implements the C functions for two devices that use each other's objects.
#include "loading/peer.hpp"

#include <backplane/backplane.h>

#include "api/boundary.hpp"
#include "memory/buffer.hpp"
#include "streams/stream.hpp"

using namespace backplane::core;

bp_status bph_device_query_peer(bph_device* device, bph_device* peer, uint32_t* out, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_device_query_peer";
    start_output(out, function);
    const Device& object = require<Device>(device, function);
    const Device& other = require<Device>(peer, function);
    if (&object == &other) {
      throw Error(BP_INVALID_ARGUMENT, "{}: both devices are {}; pass two open devices", function, object.name);
    }
    *out = peer_access(object, other).uses;
  });
}

bp_status bph_buffer_map_peer(bph_device* device, bph_buffer* buffer, bph_stream* stream, bph_buffer** out,
                              bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_buffer_map_peer";
    start_output(out, function);
    Device& owner = require<Device>(device, function);
    Stream* user = stream == nullptr ? nullptr : &require<Stream>(stream, function);
    Buffer& mapped = Buffer::map_peer(owner, require<Buffer>(buffer, function), user);
    *out = reinterpret_cast<bph_buffer*>(mapped.public_handle);
  });
}
