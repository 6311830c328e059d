// SPDX-License-Identifier: Apache-2.0
// Implements the slots of the layer `validation` for streams and events.
#include "layers/validation/streams.hpp"

#include <new>

#include "layers/validation/call.hpp"

namespace backplane::core::layers {

namespace {

bp_status stream_create(bp_device* handle, const bp_stream_desc* desc, bp_stream** out, bp_error* error) {
  if (out != nullptr) *out = nullptr;
  return checked(handle, Slot::stream_create, error, [&](Call& call) {
    call.need(out, "out");
    (void)call.input(desc, BP_STREAM_DESC_MIN_SIZE, "bp_stream_desc");
    CheckedDevice& device = call.device();
    CheckedStream state;
    {
      const std::lock_guard lock(device.mutex);
      state.line = device.ledger.open_line();
    }
    bp_stream* made = nullptr;
    Outcome outcome = create(call, Slot::stream_create, &made,
                             [&](const bp_device_api& next, bp_device* inner, bp_stream** created, bp_error* record) {
                               return next.stream_create(inner, desc, created, record);
                             });
    *out = keep(call, outcome, made, state);
    if (*out == nullptr) {
      const std::lock_guard lock(device.mutex);
      device.ledger.close_line(state.line);
    }
    return outcome.write(error);
  });
}

void stream_destroy(bp_device* handle, bp_stream* stream) {
  checked_void(handle, "stream_destroy", [&](Call& call) {
    CheckedDevice& device = call.device();
    uint64_t line = 0;
    {
      const std::lock_guard lock(device.mutex);
      const CheckedStream& state = call.object(stream, "stream");
      line = state.line;
      if (state.calls != 0) {
        call.refuse(rule::kCallRunning, "another call on stream {} runs; wait for it, then destroy", fmt::ptr(stream));
      }
      if (state.captures()) {
        call.refuse(rule::kCaptureCall, "stream {} captures a graph; end the capture, then destroy", fmt::ptr(stream));
      }
      if (!state.failed && !device.ledger.idle(state.line)) {
        call.refuse(rule::kStreamPending, "work of stream {} is pending; wait for it, then destroy", fmt::ptr(stream));
      }
      device.streams.end(stream);
    }
    call.next().stream_destroy(call.inner(), stream);
    const std::lock_guard lock(device.mutex);
    device.ledger.close_line(line);
  });
}

// Runs `body`, which records the points that a wait covers. Returns false if there is no memory for
// the points. The wait continues in either case.
template <class Body>
bool noted(Body&& body) {
  try {
    body();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bp_status stream_wait(bp_device* handle, bp_stream* stream, uint64_t timeout_ns, bp_error* error) {
  return checked(handle, Slot::stream_wait, error, [&](Call& call) {
    Ledger& ledger = call.device().ledger;
    CheckedStream* state = nullptr;
    Clock covered;
    bool known = true;  // false if there was no memory to record the points that the wait covers
    uint64_t enqueued = 0;
    {
      const std::lock_guard lock(call.device().mutex);
      state = &call.occupy_stream(stream);
      if (state->captures()) {
        call.refuse(rule::kCaptureCall, "stream {} captures a graph; end the capture, then wait", fmt::ptr(stream));
      }
      enqueued = ledger.enqueued(state->line);
      known = noted([&] { ledger.now(state->line, covered); });
    }
    Outcome outcome =
        call.forward(Slot::stream_wait, [&](const bp_device_api& next, bp_device* inner, bp_error* record) {
          return next.stream_wait(inner, stream, timeout_ns, record);
        });
    if (outcome.status == BP_TIMEOUT && timeout_ns == BP_WAIT_FOREVER) {
      call.blame(outcome, rule::kEndlessWait, "returned TIMEOUT for BP_WAIT_FOREVER; report it to the plugin's author");
    }
    const std::lock_guard lock(call.device().mutex);
    call.note(outcome, state);
    if (outcome.ok()) known ? ledger.passed(covered) : ledger.lose();
    // A plugin returns EXECUTION_FAILED or INTERNAL only when the stream's work no longer accesses
    // memory.
    if (outcome.status == BP_EXECUTION_FAILED || outcome.status == BP_INTERNAL) {
      ledger.failed(state->line, enqueued);
    }
    return outcome.write(error);
  });
}

bp_status event_create(bp_device* handle, uint32_t flags, bp_event** out, bp_error* error) {
  if (out != nullptr) *out = nullptr;
  return checked(handle, Slot::event_create, error, [&](Call& call) {
    call.need(out, "out");
    if ((flags & ~BP_EVENT_TIMING) != 0) {
      call.refuse(rule::kUnknownValue, "flags {:#x} has unknown bits; use 0 or BP_EVENT_TIMING", flags);
    }
    bp_event* made = nullptr;
    Outcome outcome = create(call, Slot::event_create, &made,
                             [&](const bp_device_api& next, bp_device* inner, bp_event** created, bp_error* record) {
                               return next.event_create(inner, flags, created, record);
                             });
    CheckedEvent state;
    state.timing = (flags & BP_EVENT_TIMING) != 0;
    *out = keep(call, outcome, made, std::move(state));
    return outcome.write(error);
  });
}

void event_destroy(bp_device* handle, bp_event* event) {
  checked_void(handle, "event_destroy", [&](Call& call) {
    {
      const std::lock_guard lock(call.device().mutex);
      const CheckedEvent& state = call.object(event, "event");
      if (state.calls != 0) {
        call.refuse(rule::kCallRunning, "another call on event {} runs; wait for it, then destroy", fmt::ptr(event));
      }
      call.device().events.end(event);
    }
    call.next().event_destroy(call.inner(), event);
  });
}

bp_status event_record(bp_device* handle, bp_event* event, bp_stream* stream, bp_error* error) {
  return checked(handle, Slot::event_record, error, [&](Call& call) {
    CheckedEvent* state = nullptr;
    CheckedStream* line = nullptr;
    Ledger& ledger = call.device().ledger;
    Clock recorded;
    {
      const std::lock_guard lock(call.device().mutex);
      state = &call.object(event, "event");
      if (state->recording()) {
        call.refuse(rule::kEventOneRecord, "another call records event {}; make one such call at a time",
                    fmt::ptr(event));
      }
      line = &call.occupy_stream(stream);
      call.occupy(state->calls);
      recorded.reserve(ledger.clock_size(line->line));
      ++state->records;
    }
    Outcome outcome =
        call.forward(Slot::event_record, [&](const bp_device_api& next, bp_device* inner, bp_error* record) {
          return next.event_record(inner, event, stream, record);
        });
    const std::lock_guard lock(call.device().mutex);
    call.note(outcome, line);
    ++state->records;
    if (outcome.ok() && line->captures()) {
      state->graph = line->graph;
      state->clock.clear();
    } else if (outcome.ok()) {
      (void)ledger.enqueue(line->line);
      ledger.now(line->line, recorded);
      std::swap(state->clock, recorded);
      state->graph.reset();
    }
    return outcome.write(error);
  });
}

// The points that a wait for an event covers. The points are known only if no event_record call for
// the event overlapped the wait.
struct Awaited {
  CheckedEvent* event = nullptr;
  Clock clock;
  uint64_t records = 0;

  bool complete = true;  // false if there was no memory to copy the event's clock

  // The caller holds the device's mutex.
  void begin(Call& call, const bp_event* handle, const char* role) {
    event = &call.object(handle, role);
    call.occupy(event->calls);
    complete = noted([&] { clock = event->clock; });
    records = event->records;
  }
  // Call this function when the wait has succeeded.
  void passed(Ledger& ledger) const {
    if (!complete) return ledger.lose();
    if (known()) ledger.passed(clock);
  }
  bool known() const { return !event->recording() && event->records == records; }
};

// Refuses a host wait for an event that was last recorded in a capture.
void refuse_captured(const Call& call, const CheckedEvent& event) {
  if (event.graph == nullptr) return;
  call.refuse(rule::kCaptureEvent, "the event was last recorded in a capture; record it outside of captures");
}

// Refuses a stream wait that would connect a capture with work outside the capture.
void check_capture(const Call& call, const CheckedStream& stream, const CheckedEvent& event) {
  const bool outside = event.graph == nullptr;
  if (outside && (!stream.captures() || event.records == 0)) return;
  if (!outside && event.graph->capturing && (!stream.captures() || stream.graph == event.graph)) return;
  call.refuse(rule::kCaptureEvent, "the event was last recorded {}; wait for an event of the stream's own capture",
              outside                  ? "outside of the stream's capture"
              : event.graph->capturing ? "in the capture of another graph"
                                       : "in a capture that has ended");
}

bp_status stream_wait_event(bp_device* handle, bp_stream* stream, bp_event* event, bp_error* error) {
  return checked(handle, Slot::stream_wait_event, error, [&](Call& call) {
    Awaited awaited;
    CheckedStream* line = nullptr;
    {
      const std::lock_guard lock(call.device().mutex);
      awaited.begin(call, event, "event");
      line = &call.occupy_stream(stream);
      check_capture(call, *line, *awaited.event);
      call.device().ledger.expect_order(line->line, awaited.clock);
    }
    Outcome outcome =
        call.forward(Slot::stream_wait_event, [&](const bp_device_api& next, bp_device* inner, bp_error* record) {
          return next.stream_wait_event(inner, stream, event, record);
        });
    const std::lock_guard lock(call.device().mutex);
    call.note(outcome, line);
    if (outcome.ok() && awaited.event->graph != nullptr) {
      line->graph = awaited.event->graph;
    } else if (outcome.ok() && !line->captures()) {
      (void)call.device().ledger.enqueue(line->line);
      if (!awaited.complete) call.device().ledger.lose();
      if (awaited.known()) call.device().ledger.order_behind(line->line, awaited.clock);
    }
    return outcome.write(error);
  });
}

bp_status event_wait(bp_device* handle, bp_event* event, uint64_t timeout_ns, bp_error* error) {
  return checked(handle, Slot::event_wait, error, [&](Call& call) {
    Awaited awaited;
    {
      const std::lock_guard lock(call.device().mutex);
      awaited.begin(call, event, "event");
      refuse_captured(call, *awaited.event);
    }
    Outcome outcome =
        call.forward(Slot::event_wait, [&](const bp_device_api& next, bp_device* inner, bp_error* record) {
          return next.event_wait(inner, event, timeout_ns, record);
        });
    if (outcome.status == BP_TIMEOUT && timeout_ns == BP_WAIT_FOREVER) {
      call.blame(outcome, rule::kEndlessWait, "returned TIMEOUT for BP_WAIT_FOREVER; report it to the plugin's author");
    }
    const std::lock_guard lock(call.device().mutex);
    call.note(outcome, nullptr);
    if (outcome.ok()) awaited.passed(call.device().ledger);
    return outcome.write(error);
  });
}

bp_status event_elapsed(bp_device* handle, bp_event* begin, bp_event* end, int64_t* out_ns, bp_error* error) {
  return checked(handle, Slot::event_elapsed, error, [&](Call& call) {
    call.need(out_ns, "out_ns");
    Awaited from;
    Awaited to;
    {
      const std::lock_guard lock(call.device().mutex);
      from.begin(call, begin, "begin event");
      to.begin(call, end, "end event");
      for (const Awaited* each : {&from, &to}) {
        refuse_captured(call, *each->event);
        if (!each->event->timing || (each->event->clock.empty() && !each->event->recording())) {
          call.refuse(rule::kElapsedTiming, "the {} event {}; create both with BP_EVENT_TIMING and record them",
                      each == &from ? "begin" : "end", each->event->timing ? "was never recorded" : "has no timing");
        }
      }
    }
    Outcome outcome =
        call.forward(Slot::event_elapsed, [&](const bp_device_api& next, bp_device* inner, bp_error* record) {
          return next.event_elapsed(inner, begin, end, out_ns, record);
        });
    const std::lock_guard lock(call.device().mutex);
    call.note(outcome, nullptr);
    for (const Awaited* each : {&from, &to}) {
      if (outcome.ok()) each->passed(call.device().ledger);
    }
    return outcome.write(error);
  });
}

}  // namespace

void splice_streams(CheckedPlugin& plugin) {
  const bp_device_api& has = plugin.has;
  splice_slot(plugin.api.stream_create, has.stream_create, stream_create);
  splice_slot(plugin.api.stream_destroy, has.stream_destroy, stream_destroy);
  splice_slot(plugin.api.stream_wait, has.stream_wait, stream_wait);
  splice_slot(plugin.api.event_create, has.event_create, event_create);
  splice_slot(plugin.api.event_destroy, has.event_destroy, event_destroy);
  splice_slot(plugin.api.event_record, has.event_record, event_record);
  splice_slot(plugin.api.stream_wait_event, has.stream_wait_event, stream_wait_event);
  splice_slot(plugin.api.event_wait, has.event_wait, event_wait);
  splice_slot(plugin.api.event_elapsed, has.event_elapsed, event_elapsed);
}

}  // namespace backplane::core::layers
