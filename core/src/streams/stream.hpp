// SPDX-License-Identifier: Apache-2.0
// A stream of the host API: the plugin's stream, its timeline, its cache of plans, and its
// workspace.
//
// Only the caller that holds the stream's lock may use the plugin's stream. If another thread (e.g.
// releasing a buffer) needs to know when the stream passes a point, it requests a marker from the
// timeline; the next call on the stream records it first.
#pragma once

#include <backplane/backplane.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

#include "base/handle.hpp"
#include "base/ref.hpp"
#include "dispatch/plan_cache.hpp"
#include "loading/device.hpp"
#include "memory/allocator.hpp"
#include "streams/stream_lock.hpp"
#include "streams/timeline.hpp"

namespace backplane::core {

struct EndingStream;

// A plugin event after all work that is on a stream. Callers wait for it without holding the
// stream's lock.
class WaitMarker {
 public:
  WaitMarker(const Device& device, bp_event* event) noexcept : device_(device), event_(event) {}
  WaitMarker(const WaitMarker&) = delete;
  WaitMarker& operator=(const WaitMarker&) = delete;
  ~WaitMarker();
  bp_event* event() const noexcept { return event_; }
  uint64_t point = 0;  // the point of the timeline that passes with the event

 private:
  const Device& device_;
  bp_event* event_;
};

class Stream final : public Object {
 public:
  static constexpr HandleType kHandleType = HandleType::stream;

  // `desc` is the caller's. Throws as bph_stream_create.
  static Ref<Stream> create(Ref<Device> device, const bph_stream_desc& desc);

  Ref<Device> device;
  const bp_device_api* api = nullptr;  // same as device->api, saves a load
  bp_device* device_handle = nullptr;
  bp_stream* handle = nullptr;
  uint64_t public_handle = 0;
  Ref<Timeline> timeline;
  Pool* pool = nullptr;  // private to the allocator

  // The reasons why a call must take the slow path to the stream's lock; 0 for an ordinary stream.
  static constexpr uint32_t kGateShared = 1, kGateCallback = 2, kGateFailed = 4;
  std::atomic<uint32_t> gate{0};

  StreamPlanCache plan_cache;             // the plans that the stream used last
  Span workspace;                         // the workspace of plans; grows on demand, in stream order
  Span temporaries;                       // the temporaries of programs; grow likewise
  bph_stream* fallback_stream = nullptr;  // on the fallback device, made at the first use
  uint32_t flags = 0;                     // BPH_STREAM_*
  int32_t priority = 0;

  bool shared() const noexcept { return (flags & BPH_STREAM_SHARED) != 0; }

  // Call first in every call on the stream, with its lock. Costs one load when there is nothing to
  // do.
  void begin_call() noexcept {
    if (timeline->marker_requested()) [[unlikely]]
      timeline->record_marker(*device, handle);
  }
  // Call after every enqueue, with the plugin's status unless that was OK.
  void count_enqueue(bp_status status) noexcept { timeline->count_enqueue(status); }
  void count_enqueue() noexcept { timeline->count_enqueue(); }
  bool idle() const noexcept { return timeline->idle(); }

  // Workspace of at least `bytes`, valid until the next call on the stream that needs more.
  const Span& workspace_of(uint64_t bytes) {
    if (workspace.bytes < bytes) [[unlikely]]
      grow(workspace, bytes, workspace.bytes + workspace.bytes / 2, 0);
    return workspace;
  }

  // Memory for a program's temporaries, fully aligned, valid until the next program needs more.
  const Span& temporaries_of(uint64_t bytes) {
    if (temporaries.bytes < bytes) grow(temporaries, bytes, bytes, device->full_alignment());
    return temporaries;
  }

  // bph_stream_enqueue: runs the callback, which enqueues the caller's own work, with the stream's
  // lock.
  using Enqueue = bp_status (*)(void* context, bp_device* device, bp_stream* stream, bp_error* error);
  void enqueue(Enqueue callback, void* context);
  // False inside such a callback on this thread.
  bool may_wait() const noexcept;

  // Returns OK or TIMEOUT; throws EXECUTION_FAILED, DEVICE_LOST. A SHARED stream is unlocked during
  // the wait, unless this thread already holds its lock.
  bp_status try_wait(uint64_t timeout_ns);
  // Like try_wait, but also throws TIMEOUT.
  void wait(uint64_t timeout_ns);

  // Records a marker after all enqueued work, for `wait_for`. Call with the lock held; wait after
  // it is released. Returns null if the caller must use the plugin's stream_wait, because the
  // stream is not SHARED or no event could be recorded.
  std::shared_ptr<WaitMarker> record_wait_marker() noexcept;
  bp_status try_wait_for(const std::shared_ptr<WaitMarker>& marker, uint64_t timeout_ns);
  void wait_for(const std::shared_ptr<WaitMarker>& marker) { try_wait_for(marker, BP_WAIT_FOREVER); }

  ~Stream() override;

 private:
  friend class StreamLock;

  // The lock of a SHARED stream.
  struct Shared {
    std::mutex mutex;
    std::atomic<const void*> owner{nullptr};  // StreamLock::thread() of the holder
    uint32_t depth = 0;
    std::shared_ptr<WaitMarker> latest;  // reused until more work is enqueued
  };

  Stream() = default;
  // Does not wait: the plugin's stream stays until its work has ended.
  void dispose() noexcept override;
  // Grows to `wanted` bytes, or to `least` if that is more or memory is short.
  void grow(Span& span, uint64_t least, uint64_t wanted, uint64_t alignment);
  void drop(Span& span) noexcept;
  bool holds_lock() const noexcept;
  bp_status wait_locked(uint64_t timeout_ns);
  bp_status wait_in_slices(uint64_t timeout_ns);
  bp_status wait_shared(uint64_t timeout_ns);

  std::unique_ptr<Shared> shared_;
  // The error of the enqueue callback that failed the stream.
  std::unique_ptr<const Error> failure_;
  std::unique_ptr<EndingStream> ending_;  // allocated with the stream, so that its end cannot fail
};

inline StreamLock::StreamLock(Stream& stream, const char* function, Purpose purpose) : stream_(stream) {
  if (stream.gate.load(std::memory_order_relaxed) != 0) [[unlikely]]
    enter(function, purpose);
}

}  // namespace backplane::core
