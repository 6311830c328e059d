// SPDX-License-Identifier: Apache-2.0
// A stream of the host API: the plugin's stream, how far it has come, the plans that it used last, and its workspace.
//
// Only the caller that owns the stream at the moment may call the plugin's stream. Another thread that needs to know
// when it passes (a buffer's release) wants a mark of its timeline, and the owner's next call records it first.
#pragma once

#include <backplane/backplane.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "allocator.hpp"
#include "device.hpp"
#include "handle.hpp"
#include "plan_cache.hpp"
#include "ref.hpp"
#include "timeline.hpp"

namespace bp {

struct EndingStream;

class Stream final : public Object {
 public:
  static constexpr HandleType handle_type = HandleType::stream;

  static Ref<Stream> create(Ref<Device> device, int32_t priority);

  Ref<Device> device;
  const bp_device_api* api = nullptr;  // same as device->api, one load nearer
  bp_device* device_handle = nullptr;
  bp_stream* handle = nullptr;
  uint64_t public_handle = 0;
  Ref<Timeline> timeline;
  Pool* pool = nullptr;  // the allocator's own

  PlanFront plan_front;                   // see plan_cache.hpp
  Span workspace;                         // of plans: grows on demand, in stream order
  Span temporaries;                       // of programs: likewise
  bph_stream* fallback_stream = nullptr;  // on the fallback device, made at the first use

  // Called first by every call on the stream: one load when there is nothing to do.
  void begin_call() noexcept {
    if (timeline->mark_wanted()) [[unlikely]]
      timeline->record_mark(*device, handle);
  }
  // Called after every enqueue with what the plugin answered; `enqueued_one` where that was OK.
  void answered(bp_status status) noexcept { timeline->answered(status); }
  void enqueued_one() noexcept { timeline->enqueued_one(); }
  bool idle() const noexcept { return timeline->idle(); }

  // Workspace of at least `bytes`, valid until the next call on the stream that needs more.
  const Span& workspace_of(uint64_t bytes) {
    if (workspace.bytes < bytes) [[unlikely]]
      grow(workspace, bytes, workspace.bytes + workspace.bytes / 2, 0);
    return workspace;
  }

  // Memory for a program's temporaries, aligned to what views may state, valid until the next program needs more.
  const Span& temporaries_of(uint64_t bytes) {
    if (temporaries.bytes < bytes) grow(temporaries, bytes, bytes, uint64_t{1} << BP_MAX_ALIGNMENT_LOG2);
    return temporaries;
  }

  // OK or TIMEOUT; throws EXECUTION_FAILED, DEVICE_LOST.
  bp_status try_wait(uint64_t timeout_ns);
  // Throws TIMEOUT too.
  void wait(uint64_t timeout_ns);

  ~Stream() override;

 private:
  Stream() = default;
  void dispose() noexcept override;  // waits for nothing: pending work keeps the plugin's stream until it ended
  // To `wanted` bytes, or to `least` where that is more, or all that memory is left for.
  void grow(Span& span, uint64_t least, uint64_t wanted, uint64_t alignment);
  void drop(Span& span) noexcept;

  std::unique_ptr<EndingStream> ending_;  // made with the stream, so that its end cannot fail
};

}  // namespace bp
