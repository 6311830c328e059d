// SPDX-License-Identifier: Apache-2.0
// Defects in ordering and timing: recording of events, waits, timeouts, copies.
#include "runtime.hpp"

#include <chrono>
#include <thread>

namespace backplane::conformance::mutants {
namespace {

std::atomic<int> pending_later{0};

void wait_and_destroy(bp_device* device, bp_buffer* buffer) {
  while (pending_later.load() != 0) std::this_thread::yield();
  kHonest.buffer_destroy(device, buffer);
}

std::atomic<HostStream*> created_last{nullptr};

bp_status create_stream(bp_device* device, const bp_stream_desc* desc, bp_stream** out, bp_error* error) {
  const bp_status status = kHonest.stream_create(device, desc, out, error);
  if (status == BP_OK) created_last.store(&stream_of(*out));
  return status;
}
void destroy_stream(bp_device* device, bp_stream* stream) {
  HostStream* ended = stream == nullptr ? nullptr : &stream_of(stream);
  created_last.compare_exchange_strong(ended, nullptr);
  kHonest.stream_destroy(device, stream);
}

bp_status record_early(bp_device* device, bp_event* event, bp_stream*, bp_error* error) {
  return kHonest.event_record(device, event, side_stream(), error);
}
bp_status record_once(bp_device* device, bp_event* event, bp_stream* stream, bp_error* error) {
  if (event_of(event).latest().timeline != nullptr) return BP_OK;
  return kHonest.event_record(device, event, stream, error);
}

bp_status event_wait_at_once(bp_device*, bp_event*, uint64_t, bp_error*) { return BP_OK; }
bp_status event_wait_unrecorded(bp_device* device, bp_event* event, uint64_t timeout_ns, bp_error* error) {
  if (event_of(event).latest().timeline != nullptr) return kHonest.event_wait(device, event, timeout_ns, error);
  if (timeout_ns == BP_WAIT_FOREVER) {
    while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  return BP_TIMEOUT;
}
// Polls the event, so an event_record call during the wait prolongs the wait. A correct event_wait covers only
// event_record calls that preceded the wait.
bp_status event_wait_newest(bp_device* device, bp_event* event, uint64_t timeout_ns, bp_error* error) {
  const auto begin = Clock::now();
  while (true) {
    const bp_status status = kHonest.event_wait(device, event, 0, error);
    if (status != BP_TIMEOUT) return status;
    if (timeout_ns != BP_WAIT_FOREVER && Clock::now() - begin >= std::chrono::nanoseconds(timeout_ns)) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}
bp_status event_wait_patient(bp_device* device, bp_event* event, uint64_t timeout_ns, bp_error* error) {
  return kHonest.event_wait(device, event, timeout_ns == 0 ? 0 : BP_WAIT_FOREVER, error);
}
bp_status stream_wait_at_once(bp_device*, bp_stream*, uint64_t, bp_error*) { return BP_OK; }
bp_status stream_wait_forever(bp_device* device, bp_stream* stream, uint64_t, bp_error* error) {
  return kHonest.stream_wait(device, stream, BP_WAIT_FOREVER, error);
}
bp_status stream_wait_in_microseconds(bp_device* device, bp_stream* stream, uint64_t timeout_ns, bp_error* error) {
  const bool finite = timeout_ns != BP_WAIT_FOREVER && timeout_ns < UINT64_MAX / 1000;
  return kHonest.stream_wait(device, stream, finite ? timeout_ns * 1000 : timeout_ns, error);
}
bp_status stream_wait_poll_blocks(bp_device* device, bp_stream* stream, uint64_t timeout_ns, bp_error* error) {
  return kHonest.stream_wait(device, stream, timeout_ns == 0 ? BP_WAIT_FOREVER : timeout_ns, error);
}
bp_status stream_wait_poll_never_ready(bp_device* device, bp_stream* stream, uint64_t timeout_ns, bp_error* error) {
  return timeout_ns == 0 ? BP_TIMEOUT : kHonest.stream_wait(device, stream, timeout_ns, error);
}
// The enqueue call blocks the host until the event has completed, although only the stream should
// wait.
bp_status stream_wait_event_on_host(bp_device* device, bp_stream*, bp_event* event, bp_error* error) {
  return kHonest.event_wait(device, event, BP_WAIT_FOREVER, error);
}
bp_status execute_blocking(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                           bp_error* error) {
  const bp_status status = kHonest.plan_execute(device, stream, plan, execution, error);
  return status == BP_OK ? kHonest.stream_wait(device, stream, BP_WAIT_FOREVER, error) : status;
}
void event_destroy_waits(bp_device* device, bp_event* event) {
  if (event != nullptr) kHonest.event_wait(device, event, BP_WAIT_FOREVER, nullptr);
  kHonest.event_destroy(device, event);
}

bp_status elapsed_in_microseconds(bp_device* device, bp_event* begin, bp_event* end, int64_t* out_ns, bp_error* error) {
  const bp_status status = kHonest.event_elapsed(device, begin, end, out_ns, error);
  if (status == BP_OK) *out_ns /= 1000;
  return status;
}
bp_status elapsed_backwards(bp_device* device, bp_event* begin, bp_event* end, int64_t* out_ns, bp_error* error) {
  return kHonest.event_elapsed(device, end, begin, out_ns, error);
}
bp_status elapsed_before_ready(bp_device* device, bp_event* begin, bp_event* end, int64_t* out_ns, bp_error* error) {
  const bp_status status = kHonest.event_elapsed(device, begin, end, out_ns, error);
  if (status != BP_NOT_READY) return status;
  *out_ns = 0;
  return BP_OK;
}
bp_status elapsed_unrecorded(bp_device* device, bp_event* begin, bp_event* end, int64_t* out_ns, bp_error* error) {
  const bp_status status = kHonest.event_elapsed(device, begin, end, out_ns, error);
  return status == BP_INVALID_ARGUMENT ? BP_NOT_READY : status;
}

bp_status copy_elsewhere(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, bp_buffer* src,
                         uint64_t src_offset, uint64_t bytes, bp_error* error) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  (void)stream;
  return kHonest.copy(device, side_stream(), dst, dst_offset, src, src_offset, bytes, error);
}
bp_status copy_short(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, bp_buffer* src,
                     uint64_t src_offset, uint64_t bytes, bp_error* error) {
  return kHonest.copy(device, stream, dst, dst_offset, src, src_offset, bytes % 4 == 0 ? bytes : bytes - bytes % 4,
                      error);
}
bp_status copy_from_start(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, bp_buffer* src,
                          uint64_t, uint64_t bytes, bp_error* error) {
  return kHonest.copy(device, stream, dst, dst_offset, src, 0, bytes, error);
}
bp_status copy_rounds_up(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, bp_buffer* src,
                         uint64_t src_offset, uint64_t bytes, bp_error* error) {
  const uint64_t room = std::min(buffer_of(dst).span.bytes - dst_offset, buffer_of(src).span.bytes - src_offset);
  return kHonest.copy(device, stream, dst, dst_offset, src, src_offset, std::min((bytes + 3) / 4 * 4, room), error);
}
bp_status copy_refuses_nothing(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset,
                               bp_buffer* src, uint64_t src_offset, uint64_t bytes, bp_error* error) {
  if (bytes == 0) return report(error, BP_INVALID_ARGUMENT, "mutant: 0 bytes to copy");
  return kHonest.copy(device, stream, dst, dst_offset, src, src_offset, bytes, error);
}
// Reads the buffer during the call, although earlier work on the stream may still have to write the buffer.
bp_status copy_out_early(bp_device*, bp_stream*, void* dst, bp_buffer* src, uint64_t src_offset, uint64_t bytes,
                         bp_error*) {
  if (bytes != 0) std::memcpy(dst, buffer_of(src).span.address + src_offset, bytes);
  return BP_OK;
}
bp_status copy_in_early(bp_device*, bp_stream*, bp_buffer* dst, uint64_t dst_offset, const void* src, uint64_t bytes,
                        bp_error*) {
  if (bytes != 0) std::memcpy(buffer_of(dst).span.address + dst_offset, src, bytes);
  return BP_OK;
}
bp_status copy_out_late(bp_device*, bp_stream* stream, void* dst, bp_buffer* src, uint64_t src_offset, uint64_t bytes,
                        bp_error*) {
  if (bytes != 0)
    later(stream_of(stream), [=, from = buffer_of(src).span.address + src_offset] { std::memcpy(dst, from, bytes); });
  return BP_OK;
}

}  // namespace

void later(HostStream& stream, std::function<void()> work) {
  pending_later.fetch_add(1);
  std::thread([timeline = stream.timeline(), point = stream.point(), work = std::move(work)] {
    (void)timeline->wait(point, BP_WAIT_FOREVER);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    work();
    pending_later.fetch_sub(1);
  }).detach();
}
HostStream* last_stream() { return created_last.load(); }
void keep_last_stream(bp_device_api& api) {
  api.stream_create = create_stream;
  api.stream_destroy = destroy_stream;
}
void wait_for_later(bp_device_api& api) { api.buffer_destroy = wait_and_destroy; }

const Mutation defect::event_early = on_slot<&bp_device_api::event_record, record_early>();
const Mutation defect::event_recorded_once = on_slot<&bp_device_api::event_record, record_once>();
const Mutation defect::event_wait_at_once = on_slot<&bp_device_api::event_wait, mutants::event_wait_at_once>();
const Mutation defect::event_unrecorded_hangs = on_slot<&bp_device_api::event_wait, event_wait_unrecorded>();
const Mutation defect::event_wait_newest = on_slot<&bp_device_api::event_wait, mutants::event_wait_newest>();
const Mutation defect::event_timeout_ignored = on_slot<&bp_device_api::event_wait, event_wait_patient>();
const Mutation defect::event_destroy_waits = on_slot<&bp_device_api::event_destroy, mutants::event_destroy_waits>();
const Mutation defect::stream_wait_at_once = on_slot<&bp_device_api::stream_wait, mutants::stream_wait_at_once>();
const Mutation defect::stream_timeout_ignored = on_slot<&bp_device_api::stream_wait, stream_wait_forever>();
const Mutation defect::stream_timeout_in_microseconds =
    on_slot<&bp_device_api::stream_wait, stream_wait_in_microseconds>();
const Mutation defect::stream_poll_blocks = on_slot<&bp_device_api::stream_wait, stream_wait_poll_blocks>();
const Mutation defect::stream_poll_never_ready = on_slot<&bp_device_api::stream_wait, stream_wait_poll_never_ready>();
const Mutation defect::stream_wait_event_on_host =
    on_slot<&bp_device_api::stream_wait_event, mutants::stream_wait_event_on_host>();
const Mutation defect::enqueue_blocks = on_slot<&bp_device_api::plan_execute, execute_blocking>();
const Mutation defect::elapsed_in_microseconds =
    on_slot<&bp_device_api::event_elapsed, mutants::elapsed_in_microseconds>();
const Mutation defect::elapsed_backwards = on_slot<&bp_device_api::event_elapsed, mutants::elapsed_backwards>();
const Mutation defect::elapsed_before_ready = on_slot<&bp_device_api::event_elapsed, mutants::elapsed_before_ready>();
const Mutation defect::elapsed_unrecorded = on_slot<&bp_device_api::event_elapsed, mutants::elapsed_unrecorded>();
const Mutation defect::copy_elsewhere = on_slot<&bp_device_api::copy, mutants::copy_elsewhere>();
const Mutation defect::copy_short = on_slot<&bp_device_api::copy, mutants::copy_short>();
const Mutation defect::copy_from_start = on_slot<&bp_device_api::copy, mutants::copy_from_start>();
const Mutation defect::copy_rounds_up = on_slot<&bp_device_api::copy, mutants::copy_rounds_up>();
const Mutation defect::copy_refuses_nothing = on_slot<&bp_device_api::copy, mutants::copy_refuses_nothing>();
const Mutation defect::copy_out_early = on_slot<&bp_device_api::copy_out, mutants::copy_out_early>();
const Mutation defect::copy_in_early = on_slot<&bp_device_api::copy_in, mutants::copy_in_early>();
const Mutation defect::copy_out_late{.api = [](bp_device_api& api) {
  api.copy_out = mutants::copy_out_late;
  wait_for_later(api);
}};

}  // namespace backplane::conformance::mutants
