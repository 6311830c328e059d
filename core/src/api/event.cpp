// SPDX-License-Identifier: Apache-2.0
// Implements the C functions for events.
#include <backplane/backplane.h>

#include "api/boundary.hpp"
#include "base/structs.hpp"
#include "streams/event.hpp"

using namespace backplane::core;

bp_status bph_event_create(bph_device* device, uint32_t flags, bph_event** out, bp_error* error) {
  return guard(error, [&] {
    start_output(out, "bph_event_create");
    hand_out(Event::create(Ref<Device>(&require<Device>(device, "bph_event_create")), flags), out);
  });
}

void bph_event_release(bph_event* event) { end_handle<Event>(event); }

bp_status bph_event_get_info(bph_event* event, bph_event_info* out, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_event_get_info";
    const Event& object = require<Event>(event, function);
    bph_event_info info = {};
    info.flags = object.flags;
    info.plugin_event = object.handle;
    write_output(out, info, function, "bph_event_info", BPH_EVENT_INFO_MIN_SIZE);
  });
}

bp_status bph_event_record(bph_event* event, bph_stream* stream, bp_error* error) {
  return guard(error,
               [&] { require<Event>(event, "bph_event_record").record(require<Stream>(stream, "bph_event_record")); });
}

bp_status bph_event_wait(bph_event* event, uint64_t timeout_ns, bp_error* error) {
  return guard_status(error, [&] { return require<Event>(event, "bph_event_wait").try_wait(timeout_ns); });
}

bp_status bph_event_elapsed(bph_event* begin, bph_event* end, int64_t* out_ns, bp_error* error) {
  return guard_status(error, [&] {
    constexpr const char* function = "bph_event_elapsed";
    start_output(out_ns, function);
    return Event::elapsed(require<Event>(begin, function), require<Event>(end, function), out_ns);
  });
}
