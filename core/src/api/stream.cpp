// SPDX-License-Identifier: Apache-2.0
// Implements the C functions for streams.
#include <backplane/backplane.h>

#include "api/boundary.hpp"
#include "base/structs.hpp"
#include "streams/event.hpp"

using namespace backplane::core;

bp_status bph_stream_create(bph_device* device, const bph_stream_desc* desc, bph_stream** out, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_stream_create";
    start_output(out, function);
    Device& owner = require<Device>(device, function);
    bph_stream_desc known = {};
    if (desc != nullptr) known = read_input(desc, BPH_STREAM_DESC_MIN_SIZE, function, "bph_stream_desc");
    const Ref<Stream> stream = Stream::create(Ref<Device>(&owner), known);
    hand_out(stream, out);
    stream->call_at_end(known.release, known.context);
  });
}

void bph_stream_release(bph_stream* stream) { end_handle<Stream>(stream); }

bp_status bph_stream_wait(bph_stream* stream, uint64_t timeout_ns, bp_error* error) {
  return guard_status(error, [&] { return require<Stream>(stream, "bph_stream_wait").try_wait(timeout_ns); });
}

bp_status bph_stream_revive(bph_stream* stream, bp_error* error) {
  return guard(error, [&] { require<Stream>(stream, "bph_stream_revive").revive(); });
}

bp_status bph_stream_get_info(bph_stream* stream, bph_stream_info* out, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_stream_get_info";
    const Stream& object = require<Stream>(stream, function);
    bph_stream_info info = {};
    info.priority = object.priority;
    info.flags = object.flags;
    info.plugin_stream = (object.flags & BPH_STREAM_EXTERNAL) != 0 ? object.handle : nullptr;
    write_output(out, info, function, "bph_stream_info", BPH_STREAM_INFO_MIN_SIZE);
  });
}

bp_status bph_stream_enqueue(bph_stream* stream,
                             bp_status (*enqueue)(void* context, bp_device* plugin_device, bp_stream* plugin_stream,
                                                  bp_error* error),
                             void* context, bp_error* error) {
  return guard(error, [&] {
    Stream& target = require<Stream>(stream, "bph_stream_enqueue");
    if (enqueue == nullptr) throw Error(BP_INVALID_ARGUMENT, "bph_stream_enqueue: the callback is null; pass one");
    target.enqueue(enqueue, context);
  });
}

bp_status bph_stream_wait_event(bph_stream* stream, bph_event* event, bp_error* error) {
  return guard(error, [&] {
    Stream& waiter = require<Stream>(stream, "bph_stream_wait_event");
    require<Event>(event, "bph_stream_wait_event").make_wait(waiter);
  });
}
