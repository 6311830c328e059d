// SPDX-License-Identifier: Apache-2.0
// A stream of the host API: the plugin's stream, how far it has come, the plans that it used last, and its workspace.
//
// Only the caller that has the stream's turn may call the plugin's stream. Another thread (a buffer's release) may need
// to know when the stream passes. It wants a marker of the timeline, and the next call on the stream first records it.
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
#include "streams/timeline.hpp"
#include "streams/stream_lock.hpp"

namespace backplane::core {

struct EndingStream;

// An event of the plugin's behind all that a stream held when it was made; waited for outside the stream's turn.
class WaitMarker {
 public:
  WaitMarker(const Device& device, bp_event* event) noexcept : device_(device), event_(event) {}
  WaitMarker(const WaitMarker&) = delete;
  WaitMarker& operator=(const WaitMarker&) = delete;
  ~WaitMarker();
  bp_event* event() const noexcept { return event_; }
  uint64_t point = 0;  // of the timeline

 private:
  const Device& device_;
  bp_event* event_;
};

class Stream final : public Object {
 public:
  static constexpr HandleType kHandleType = HandleType::stream;

  // `desc` as the caller gave it. Throws as bph_stream_create.
  static Ref<Stream> create(Ref<Device> device, const bph_stream_desc& desc);

  Ref<Device> device;
  const bp_device_api* api = nullptr;  // same as device->api, one load nearer
  bp_device* device_handle = nullptr;
  bp_stream* handle = nullptr;
  uint64_t public_handle = 0;
  Ref<Timeline> timeline;
  Pool* pool = nullptr;  // the allocator's own

  // Why a call must do more to get its turn; 0 for an ordinary stream.
  static constexpr uint32_t kGateShared = 1, kGateCallback = 2, kGateFailed = 4;
  std::atomic<uint32_t> gate{0};

  StreamPlanCache plan_cache;                   // see plan_cache.hpp
  Span workspace;                         // of plans: grows on demand, in stream order
  Span temporaries;                       // of programs: likewise
  bph_stream* fallback_stream = nullptr;  // on the fallback device, made at the first use
  uint32_t flags = 0;                     // BPH_STREAM_*
  int32_t priority = 0;

  bool shared() const noexcept { return (flags & BPH_STREAM_SHARED) != 0; }

  // Call first in every call on the stream, in its turn: one load when there is nothing to do.
  void begin_call() noexcept {
    if (timeline->marker_requested()) [[unlikely]]
      timeline->record_marker(*device, handle);
  }
  // Called after every enqueue with what the plugin count_enqueue; `count_enqueue` where that was OK.
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

  // bph_stream_enqueue: one enqueue of the caller's own work, in the stream's turn.
  using Enqueue = bp_status (*)(void* context, bp_device* device, bp_stream* stream, bp_error* error);
  void enqueue(Enqueue callback, void* context);
  // False inside such a callback on this thread.
  bool may_wait() const noexcept;

  // OK or TIMEOUT; throws EXECUTION_FAILED, DEVICE_LOST. Releases a SHARED stream's turn for the length of the wait,
  // unless this thread already has it.
  bp_status try_wait(uint64_t timeout_ns);
  // Throws TIMEOUT too.
  void wait(uint64_t timeout_ns);

  // Call in its turn: a marker behind all that is enqueued, for `wait_for` after the turn. Null where the stream's own
  // wait serves: it is not SHARED, or no marker could be made.
  std::shared_ptr<WaitMarker> record_wait_marker() noexcept;
  bp_status try_wait_for(const std::shared_ptr<WaitMarker>& marker, uint64_t timeout_ns);
  void wait_for(const std::shared_ptr<WaitMarker>& marker) { try_wait_for(marker, BP_WAIT_FOREVER); }

  ~Stream() override;

 private:
  friend class StreamLock;

  // A SHARED stream's turn.
  struct Shared {
    std::mutex mutex;
    std::atomic<const void*> owner{nullptr};  // StreamLock::thread() of the thread that has it
    uint32_t depth = 0;
    std::shared_ptr<WaitMarker> latest;  // used again while nothing was enqueued behind it
  };

  Stream() = default;
  void dispose() noexcept override;  // waits for nothing: pending work keeps the plugin's stream until it ended
  // To `wanted` bytes, or to `least` where that is more, or all that memory is left for.
  void grow(Span& span, uint64_t least, uint64_t wanted, uint64_t alignment);
  void drop(Span& span) noexcept;
  bool holds_lock() const noexcept;
  bp_status wait_locked(uint64_t timeout_ns);
  bp_status wait_in_slices(uint64_t timeout_ns);
  bp_status wait_shared(uint64_t timeout_ns);

  std::unique_ptr<Shared> shared_;
  std::unique_ptr<const Error> failure_;  // with which an enqueue callback failed the stream
  std::unique_ptr<EndingStream> ending_;  // made with the stream, so that its end cannot fail
};

inline StreamLock::StreamLock(Stream& stream, const char* function, Purpose purpose) : stream_(stream) {
  if (stream.gate.load(std::memory_order_relaxed) != 0) [[unlikely]]
    enter(function, purpose);
}

}  // namespace backplane::core
