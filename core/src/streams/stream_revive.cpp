// SPDX-License-Identifier: Apache-2.0
// Gives a failed stream a new stream of the plugin.
#include "streams/ending_stream.hpp"
#include "streams/stream.hpp"

namespace backplane::core {

namespace {

// Returns true if `wait` throws EXECUTION_FAILED. The stream's work then no longer accesses memory.
template <class Wait>
bool reports_failure(const Wait& wait) {
  try {
    wait();
    return false;
  } catch (const Error& error) {
    if (error.status() != BP_EXECUTION_FAILED) throw;
    return true;
  }
}

}  // namespace

void Stream::revive() {
  constexpr const char* function = "bph_stream_revive";
  if ((flags & BPH_STREAM_EXTERNAL) != 0) {
    throw Error(
        BP_UNSUPPORTED,
        "{}: other code uses the native stream of this EXTERNAL stream, so the library cannot replace it; release "
        "the stream and create another one",
        function);
  }
  // Locks and unlocks the stream, so that an illegal call throws before it waits.
  { const StreamLock check(*this, function, StreamLock::Purpose::wait); }
  if (!reports_failure([&] { wait(BP_WAIT_FOREVER); })) return;

  const StreamLock lock(*this, function, StreamLock::Purpose::wait);
  // Another thread may have revived the stream in the meantime.
  if (!reports_failure([&] { (void)wait_locked(0); })) return;
  bp_stream* const failed = handle;
  bph_stream_desc desc = {};
  desc.priority = priority;
  open(desc);
  if (shared_) shared_->latest.reset();
  api->stream_destroy(device_handle, failed);
  ending_->semaphores.clear();
  bph_stream_release(std::exchange(fallback_stream, nullptr));
  failure_.reset();
  failed_.store(false, std::memory_order_relaxed);
  gate.fetch_and(~kGateFailed, std::memory_order_relaxed);
  device->counters.streams_revived.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace backplane::core
