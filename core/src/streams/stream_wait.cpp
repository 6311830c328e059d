// SPDX-License-Identifier: Apache-2.0
// Waits for streams. If no other thread may use the stream during the wait, calls the plugin's
// stream_wait. Otherwise records an event while holding the stream's lock, and waits for the event
// after releasing the lock.
#include <chrono>
#include <thread>

#include "loading/plugin_call.hpp"
#include "streams/stream.hpp"

namespace backplane::core {

namespace {

// Measures how much of a timeout remains.
class Remaining {
 public:
  explicit Remaining(uint64_t timeout_ns) noexcept : timeout_ns_(timeout_ns) {}
  uint64_t ns() const noexcept {
    if (timeout_ns_ == BP_WAIT_FOREVER) return timeout_ns_;
    const auto passed = std::chrono::steady_clock::now() - begin_;
    const auto ns = static_cast<uint64_t>(std::chrono::nanoseconds(passed).count());
    return ns < timeout_ns_ ? timeout_ns_ - ns : 0;
  }

 private:
  uint64_t timeout_ns_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

WaitMarker::~WaitMarker() { device_.api->event_destroy(device_.handle, event_); }

bool Stream::holds_lock() const noexcept {
  return shared_->owner.load(std::memory_order_relaxed) == StreamLock::thread();
}

bool Stream::may_wait() const noexcept {
  const uint32_t reasons = gate.load(std::memory_order_relaxed);
  if ((reasons & kGateRecording) != 0) return false;
  if ((reasons & kGateCallback) == 0) return true;
  return shared_ != nullptr && !holds_lock();
}

bp_status Stream::wait_locked(uint64_t timeout_ns) {
  bp_error error = fresh_error();
  const uint64_t point = timeline->point_of_wait();
  const bp_status status = api->stream_wait(device_handle, handle, timeout_ns, &error);
  if (status == BP_TIMEOUT) return status;
  if (status != BP_OK) note_failure(status);
  // A plugin reports a failure only when the stream's work no longer accesses memory, so the point
  // is complete in that case too.
  timeline->complete(point);
  device->allocator.poll_pending();
  check(*device, "stream_wait", status, error);
  if (failure_) throw Error(*failure_);
  return BP_OK;
}

// Waits for a failed stream, which accepts no work, or for a stream on which no event could be
// recorded. Locks the stream for 1 ms at a time.
bp_status Stream::wait_in_slices(uint64_t timeout_ns) {
  constexpr uint64_t slice_ns = 1'000'000;
  const Remaining remaining(timeout_ns);
  for (;;) {
    const uint64_t left = remaining.ns();
    {
      const StreamLock lock(*this, "bph_stream_wait", StreamLock::Purpose::wait);
      const bp_status status = wait_locked(std::min(left, slice_ns));
      if (status != BP_TIMEOUT || left <= slice_ns) return status;
    }
    std::this_thread::yield();
  }
}

std::shared_ptr<WaitMarker> Stream::record_wait_marker() noexcept {
  if (!shared_) return nullptr;
  const bool external = (flags & BPH_STREAM_EXTERNAL) != 0;
  if (shared_->latest && !external && !device->synchronous() && shared_->latest->point == timeline->enqueued()) {
    return shared_->latest;
  }
  try {
    bp_error error = fresh_error();
    bp_event* event = nullptr;
    if (api->event_create(device_handle, 0, &event, &error) != BP_OK || event == nullptr) return nullptr;
    std::unique_ptr<WaitMarker> made;
    try {
      made = std::make_unique<WaitMarker>(*device, event);
    } catch (...) {
      api->event_destroy(device_handle, event);
      throw;
    }
    std::shared_ptr<WaitMarker> marker = std::move(made);
    const bp_status status = api->event_record(device_handle, event, handle, &error);
    count_enqueue(status);
    if (status != BP_OK) return nullptr;
    marker->point = timeline->enqueued();
    shared_->latest = marker;
    return marker;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bp_status Stream::try_wait_for(const std::shared_ptr<WaitMarker>& marker, uint64_t timeout_ns) {
  if (!marker) return shared_ && !holds_lock() ? wait_in_slices(timeout_ns) : wait_for_work(timeout_ns);
  const Remaining remaining(timeout_ns);
  bp_error error = fresh_error();
  const bp_status status = api->event_wait(device_handle, marker->event(), timeout_ns, &error);
  if (status == BP_TIMEOUT) return status;
  // A failure means that the stream did not reach the event. Only the plugin's stream_wait reports
  // that the stream's work no longer accesses memory.
  if (status != BP_OK) return wait_in_slices(remaining.ns());
  timeline->complete(marker->point);
  device->allocator.poll_pending();
  return BP_OK;
}

bp_status Stream::wait_shared(uint64_t timeout_ns) {
  const Remaining remaining(timeout_ns);
  std::shared_ptr<WaitMarker> marker;
  {
    const StreamLock lock(*this, "bph_stream_wait", StreamLock::Purpose::wait);
    // Query the stream before recording an event. Otherwise a loop of short waits might never end,
    // because each wait would enqueue an event that the stream has not reached yet.
    const bp_status status = wait_locked(0);
    if (status != BP_TIMEOUT || timeout_ns == 0) return status;
    marker = record_wait_marker();
  }
  return try_wait_for(marker, remaining.ns());
}

bp_status Stream::wait_for_work(uint64_t timeout_ns) {
  if (shared_ && !holds_lock()) return wait_shared(timeout_ns);
  const StreamLock lock(*this, "bph_stream_wait", StreamLock::Purpose::wait);
  return wait_locked(timeout_ns);
}

void Stream::wait(uint64_t timeout_ns) {
  if (try_wait(timeout_ns) == BP_TIMEOUT) {
    throw Error(BP_TIMEOUT, "{}: the stream's work had not ended after {} ns; it goes on, wait again", device->name,
                timeout_ns);
  }
}

}  // namespace backplane::core
