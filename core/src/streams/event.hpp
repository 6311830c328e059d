// SPDX-License-Identifier: Apache-2.0
// An event of the host API. The event remembers the stream and the timeline point at which it was
// last recorded, so a wait for the event also advances the timeline.
#pragma once

#include <backplane/backplane.h>

#include <cstdint>

#include "base/handle.hpp"
#include "base/ref.hpp"
#include "base/spin_lock.hpp"
#include "loading/device.hpp"
#include "streams/stream.hpp"
#include "streams/timeline.hpp"

namespace backplane::core {

struct PeerAccess;

class Event final : public Object {
 public:
  static constexpr HandleType kHandleType = HandleType::event;

  static Ref<Event> create(Ref<Device> device, uint32_t flags);

  Ref<Device> device;
  bp_event* handle = nullptr;
  uint64_t public_handle = 0;
  uint32_t flags = 0;  // BP_EVENT_* flags

  void record(Stream& stream);
  // Returns OK or TIMEOUT. Throws EXECUTION_FAILED and DEVICE_LOST.
  bp_status try_wait(uint64_t timeout_ns);
  // `stream` may belong to a device that has BP_PEER_WAIT for the event's device.
  void make_wait(Stream& stream);
  // Returns OK or NOT_READY. Throws on any other status.
  static bp_status elapsed(Event& begin, Event& end, int64_t* out_ns);

  ~Event() override;

 private:
  Event() = default;
  void make_peer_wait(Stream& stream, const PeerAccess& access);

  SpinLock lock_;
  // Number of record() calls that have begun, plus the number that have returned. An odd value
  // means that a call is in progress.
  uint64_t records_ = 0;
  Ref<Timeline> timeline_;  // timeline of the stream that last recorded the event
  uint64_t point_ = 0;
};

}  // namespace backplane::core
