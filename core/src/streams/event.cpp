// SPDX-License-Identifier: Apache-2.0
// Records events, waits for them, and measures time.
#include "streams/event.hpp"

#include <mutex>
#include <utility>

#include "graph/recorder.hpp"
#include "loading/peer.hpp"
#include "loading/plugin_call.hpp"

namespace backplane::core {

namespace {
void require_same_device(const char* function, const char* first, const Device& one, const char* second,
                         const Device& other) {
  if (&one != &other) {
    throw Error(BP_INVALID_ARGUMENT, "{}: the {} is of {}, the {} of {}{}; use objects of one open device", function,
                first, one.name, second, other.name, one.name == other.name ? ", opened another time" : "");
  }
}
}  // namespace

Ref<Event> Event::create(Ref<Device> device, uint32_t flags) {
  if ((flags & ~BP_EVENT_TIMING) != 0) {
    throw Error(BP_UNSUPPORTED, "bph_event_create: flags {:#x} has unknown bits; use 0 or BP_EVENT_TIMING", flags);
  }
  if ((flags & BP_EVENT_TIMING) != 0 && (device->info.capabilities & BP_CAP_TIMING) == 0) {
    throw Error(BP_UNSUPPORTED,
                "bph_event_create: {} has no timing (BP_CAP_TIMING); create the event without BP_EVENT_TIMING",
                device->name);
  }
  Ref<Event> event(kAdopt, new Event);
  bp_error error = fresh_error();
  bp_event* handle = nullptr;
  const bp_status status = device->api->event_create(device->handle, flags, &handle, &error);
  event->handle = created(*device, "event_create", status, error, handle);
  event->device = std::move(device);
  event->flags = flags;
  return event;
}

void Event::record(Stream& stream) {
  require_same_device("bph_event_record", "event", *device, "stream", *stream.device);
  const StreamLock stream_lock(stream, "bph_event_record", StreamLock::Purpose::record);
  Ref<Recorder> recorder(stream.recorder);
  if (recorder) {
    const uint32_t point = recorder->add_point(stream);
    const std::lock_guard lock(lock_);
    records_ += 2;
    recorded_point_ = point;
    std::swap(recorder, recorder_);
    return;
  }
  stream.begin_call();
  Ref<Timeline> timeline = stream.timeline;
  {
    const std::lock_guard lock(lock_);
    ++records_;
  }
  bp_error error = fresh_error();
  const bp_status status = device->api->event_record(device->handle, handle, stream.handle, &error);
  stream.count_enqueue(status);
  {
    const std::lock_guard lock(lock_);
    ++records_;
    point_ = 0;
    if (status == BP_OK) {
      point_ = stream.timeline->enqueued();
      std::swap(timeline, timeline_);
      std::swap(recorder, recorder_);
    }
  }
  check(*device, "event_record", status, error);
}

void Event::require_point(const char* function) const {
  const std::lock_guard lock(lock_);
  if (!recorder_) return;
  throw Error(BP_INVALID_ARGUMENT,
              "{}: the event was last recorded in a graph, whose launches do not record it; record the event on a "
              "stream that records no graph",
              function);
}

bp_status Event::try_wait(uint64_t timeout_ns) {
  require_point("bph_event_wait");
  lock_.lock();
  const uint64_t records = records_;
  const uint64_t point = point_;
  Ref<Timeline> timeline = timeline_;
  lock_.unlock();
  bp_error error = fresh_error();
  const bp_status status = device->api->event_wait(device->handle, handle, timeout_ns, &error);
  if (status == BP_TIMEOUT) return status;
  check(*device, "event_wait", status, error);
  lock_.lock();
  // If a record() call overlapped the wait, the point that the wait covers is unknown.
  const bool known = (records & 1) == 0 && records == records_;
  lock_.unlock();
  if (known && timeline) {
    timeline->complete(point);
    device->allocator.poll_pending();
  }
  return BP_OK;
}

void Event::make_wait(Stream& stream) {
  if (device.get() != stream.device.get()) {
    const PeerAccess access = peer_access(*stream.device, *device);
    if (access.has(BP_PEER_WAIT)) return make_peer_wait(stream, access);
  }
  require_same_device("bph_stream_wait_event", "event", *device, "stream", *stream.device);
  const StreamLock stream_lock(stream, "bph_stream_wait_event", StreamLock::Purpose::record);
  lock_.lock();
  const Ref<Recorder> recorder = recorder_;
  const uint32_t point = recorded_point_;
  const bool was_recorded = records_ != 0;
  lock_.unlock();
  if (recorder) return recorder->wait_for(stream, point);
  if (stream.recorder != nullptr) {
    if (!was_recorded) return;
    throw Error(BP_INVALID_ARGUMENT,
                "bph_stream_wait_event: the stream records a graph, and the event was recorded outside of it; wait "
                "for the event before bph_graph_begin, or before the launch");
  }
  stream.begin_call();
  bp_error error = fresh_error();
  const bp_status status = device->api->stream_wait_event(device->handle, stream.handle, handle, &error);
  stream.count_enqueue(status);
  check(*device, "stream_wait_event", status, error);
}

void Event::make_peer_wait(Stream& stream, const PeerAccess& access) {
  require_point("bph_stream_wait_event");
  const Device& waiting = *stream.device;
  enable_peer(access, waiting, *device);
  const StreamLock stream_lock(stream, "bph_stream_wait_event");
  stream.begin_call();
  bp_error error = fresh_error();
  const bp_status status = access.slots.peer_wait_event(waiting.handle, stream.handle, device->handle, handle, &error);
  stream.count_enqueue(status);
  check(waiting, "peer_wait_event", status, error);
}

bp_status Event::elapsed(Event& begin, Event& end, int64_t* out_ns) {
  require_same_device("bph_event_elapsed", "begin event", *begin.device, "end event", *end.device);
  for (const auto& [event, which] : {std::pair{&begin, "begin"}, std::pair{&end, "end"}}) {
    if ((event->flags & BP_EVENT_TIMING) == 0) {
      throw Error(BP_INVALID_ARGUMENT, "bph_event_elapsed: the {} event has no timing; create it with BP_EVENT_TIMING",
                  which);
    }
  }
  begin.require_point("bph_event_elapsed");
  end.require_point("bph_event_elapsed");
  Device& device = *begin.device;
  bp_error error = fresh_error();
  int64_t nanoseconds = 0;
  const bp_status status = device.api->event_elapsed(device.handle, begin.handle, end.handle, &nanoseconds, &error);
  if (status == BP_NOT_READY) return status;
  check(device, "event_elapsed", status, error);
  *out_ns = nanoseconds;
  return BP_OK;
}

Event::~Event() {
  if (handle != nullptr) device->api->event_destroy(device->handle, handle);
}

}  // namespace backplane::core
