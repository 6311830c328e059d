// SPDX-License-Identifier: Apache-2.0
// A stream of the host API: the plugin's stream, its timeline, its cache of plans, and its
// workspace.
//
// Only the caller that holds the stream's lock may use the plugin's stream. Another thread (e.g. a
// thread that releases a buffer) may need to know when the stream's work up to a point has
// completed. That thread requests a marker from the timeline, and the next call on the stream first
// records the marker.
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
class Recorder;
class PluginSemaphore;

// A plugin event that is recorded after all enqueued work of a stream. Callers wait for the event
// without holding the stream's lock.
class WaitMarker {
 public:
  WaitMarker(const Device& device, bp_event* event) noexcept : device_(device), event_(event) {}
  WaitMarker(const WaitMarker&) = delete;
  WaitMarker& operator=(const WaitMarker&) = delete;
  ~WaitMarker();
  bp_event* event() const noexcept { return event_; }
  uint64_t point = 0;  // the event completes after all work up to this point of the timeline

 private:
  const Device& device_;
  bp_event* event_;
};

class Stream final : public Object {
 public:
  static constexpr HandleType kHandleType = HandleType::stream;

  // Creates a stream as bph_stream_create does, and throws that function's errors.
  static Ref<Stream> create(Ref<Device> device, const bph_stream_desc& desc);
  // Registers the callback that runs after the stream has ended. Call this function last, because a stream that could
  // not be created must not run the callback.
  void call_at_end(void (*release)(void*), void* context) noexcept;

  Ref<Device> device;
  const bp_device_api* api = nullptr;  // equals device->api; the copy saves a load
  bp_device* device_handle = nullptr;
  bp_stream* handle = nullptr;
  uint64_t public_handle = 0;
  Ref<Timeline> timeline;
  Pool* pool = nullptr;  // only the allocator uses the pool

  // Bits of `gate`. Each bit is a reason why a call must take the slow path to the stream's lock.
  // The gate of an ordinary stream is 0.
  static constexpr uint32_t kGateShared = 1, kGateCallback = 2, kGateFailed = 4, kGateRecording = 8;
  std::atomic<uint32_t> gate{0};

  StreamPlanCache plan_cache;             // the plans that the stream used most recently
  Span workspace;                         // the workspace of plans; grows on demand, in stream order
  Span temporaries;                       // the temporaries of programs; grows like the workspace
  bph_stream* fallback_stream = nullptr;  // a stream on the fallback device, made at the first use
  uint32_t flags = 0;                     // BPH_STREAM_* flags
  int32_t priority = 0;
  Recorder* recorder = nullptr;  // records the stream's calls; the stream holds a reference
  uint32_t lane = 0;             // index of the stream in the recording

  bool shared() const noexcept { return (flags & BPH_STREAM_SHARED) != 0; }

  // Each call on the stream calls this function first, while it holds the stream's lock. The call
  // costs one load if no marker is requested.
  void begin_call() noexcept {
    if (timeline->marker_requested()) [[unlikely]]
      timeline->record_marker(*device, handle);
  }
  // Each function that enqueues work calls count_enqueue with the plugin's status, or without an
  // argument if the plugin has accepted the work.
  void count_enqueue(bp_status status) noexcept {
    if (status != BP_OK) [[unlikely]]
      note_failure(status);
    timeline->count_enqueue(status);
  }
  void count_enqueue() noexcept { timeline->count_enqueue(); }
  // Remembers that the plugin has reported a failure of the stream or of the device.
  void note_failure(bp_status status) noexcept {
    if (status == BP_EXECUTION_FAILED || status == BP_DEVICE_LOST) failed_.store(true, std::memory_order_relaxed);
  }
  bool idle() const noexcept { return timeline->idle(); }
  // Returns whether all work of the stream is known to have completed without a failure, so that a
  // wait needs no call to the plugin. Returns false for an EXTERNAL stream, on which other code may
  // have enqueued work. Any thread may call this function, without the lock.
  bool known_idle() const noexcept {
    return idle() && !failed_.load(std::memory_order_relaxed) &&
           (gate.load(std::memory_order_relaxed) & ~kGateShared) == 0 && (flags & BPH_STREAM_EXTERNAL) == 0;
  }

  // Returns a workspace of at least `bytes` bytes. The workspace stays valid until a call on the
  // stream needs a larger workspace.
  const Span& workspace_of(uint64_t bytes) {
    if (workspace.bytes < bytes) [[unlikely]]
      grow(workspace, bytes, workspace.bytes + workspace.bytes / 2, 0);
    return workspace;
  }

  // Returns memory for a program's temporaries, aligned for any operand. The memory stays valid
  // until a program needs more.
  const Span& temporaries_of(uint64_t bytes) {
    if (temporaries.bytes < bytes) grow(temporaries, bytes, bytes, device->full_alignment());
    return temporaries;
  }

  // Implements bph_stream_enqueue: runs `callback`, which enqueues the caller's own work, while the
  // stream's lock is held.
  using Enqueue = bp_status (*)(void* context, bp_device* device, bp_stream* stream, bp_error* error);
  void enqueue(Enqueue callback, void* context);
  // Implements bph_stream_revive, and throws that function's errors.
  void revive();
  // Implements bph_stream_get_native, and throws that function's errors.
  bp_native_handle native();
  // Keeps the semaphore until the stream's work has completed. The caller holds the stream's lock.
  void keep(const Ref<PluginSemaphore>& semaphore);
  // Returns false while the stream records a graph, and on a thread that is inside an enqueue
  // callback of this stream.
  bool may_wait() const noexcept;

  // Returns OK or TIMEOUT. Throws EXECUTION_FAILED and DEVICE_LOST. A SHARED stream is unlocked
  // during the wait, unless this thread already holds the lock.
  bp_status try_wait(uint64_t timeout_ns) {
    if (!known_idle()) return wait_for_work(timeout_ns);
    device->allocator.poll_pending();
    return BP_OK;
  }
  // Waits like try_wait, but throws TIMEOUT instead of returning it.
  void wait(uint64_t timeout_ns);

  // Returns whether the work of a SHARED stream has completed, without waiting. Call this function
  // while holding the lock. Returns false for other streams, whose wait is one plugin call. Throws
  // EXECUTION_FAILED and DEVICE_LOST.
  bool has_completed() { return shared_ && wait_locked(0) == BP_OK; }

  // Records a marker after all enqueued work, for `wait_for`. Call this function while holding the
  // lock, and wait after releasing it. Returns null if the caller must use the plugin's
  // stream_wait, because the stream is not SHARED or no event could be recorded.
  std::shared_ptr<WaitMarker> record_wait_marker() noexcept;
  bp_status try_wait_for(const std::shared_ptr<WaitMarker>& marker, uint64_t timeout_ns);
  void wait_for(const std::shared_ptr<WaitMarker>& marker) { try_wait_for(marker, BP_WAIT_FOREVER); }

  ~Stream() override;

 private:
  friend class StreamLock;

  // The lock of a SHARED stream, and the marker that all waiting threads share.
  struct Shared {
    std::mutex mutex;
    // The value of StreamLock::thread() in the thread that holds the lock, or null.
    std::atomic<const void*> owner{nullptr};
    uint32_t depth = 0;
    // The latest marker. Later waits reuse it until more work is enqueued.
    std::shared_ptr<WaitMarker> latest;
  };

  Stream() = default;
  // Creates the plugin's stream, which wraps desc.native if desc.flags has BPH_STREAM_NATIVE.
  void open(const bph_stream_desc& desc);
  // Does not wait. The plugin's stream is destroyed after its work has completed.
  void dispose() noexcept override;
  // Replaces `span` with a span of max(least, wanted) bytes, or of `least` bytes if memory is
  // short.
  void grow(Span& span, uint64_t least, uint64_t wanted, uint64_t alignment);
  void drop(Span& span) noexcept;
  bool holds_lock() const noexcept;
  bp_status wait_for_work(uint64_t timeout_ns);
  bp_status wait_locked(uint64_t timeout_ns);
  bp_status wait_in_slices(uint64_t timeout_ns);
  bp_status wait_shared(uint64_t timeout_ns);

  std::unique_ptr<Shared> shared_;
  std::atomic<bool> failed_{false};  // the plugin has reported a failure; `revive` clears it
  // The error of the enqueue callback that put the stream into the failed state.
  std::unique_ptr<const Error> failure_;
  // Allocated with the stream, so that ending the stream cannot fail.
  std::unique_ptr<EndingStream> ending_;
};

inline StreamLock::StreamLock(Stream& stream, const char* function, Purpose purpose) : stream_(stream) {
  if (stream.gate.load(std::memory_order_relaxed) != 0) [[unlikely]]
    enter(function, purpose);
}

}  // namespace backplane::core
