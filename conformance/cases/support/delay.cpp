// SPDX-License-Identifier: Apache-2.0
#include "delay.hpp"

#include <algorithm>
#include <chrono>

namespace backplane::conformance {

namespace {

// Intended duration of a copy of the whole buffer. For a shorter delay, a part of the buffer is
// copied.
constexpr uint64_t kStepNs = 1'000'000;
constexpr uint64_t kLeastBytes = 2u << 20, kMostBytes = 256u << 20;
constexpr uint64_t kMostCopies = 200;

// Returns the nanoseconds that one additional copy takes in a queue: the time of two copies minus the
// time of one copy. The difference excludes the time for submission and wait. Each time is the minimum
// of several measurements, because load can only lengthen a measurement.
uint64_t timed_copy(Device& device, const Buffer& from, const Buffer& to) {
  Stream stream(device);
  const auto timed = [&](unsigned count) {
    const uint64_t begin = now_ns();
    for (unsigned i = 0; i < count; ++i) stream.copy(to.get(), 0, from.get(), 0, from.bytes);
    stream.wait();
    return now_ns() - begin;
  };
  timed(1);  // not measured, because the first access to the pages is slower
  uint64_t one = UINT64_MAX, two = UINT64_MAX;
  for (int i = 0; i < 12; ++i) {
    one = std::min(one, timed(1));
    two = std::min(two, timed(2));
  }
  return std::max<uint64_t>({two > one ? two - one : 0, one / 8, 1000});
}

struct Calibration {
  std::string device;
  uint64_t bytes = 0;
  uint64_t copy_ns = 0;
};

// Returns the calibration of the case's device. Caches the calibration of the latest device.
const Calibration& calibrated(Context& context) {
  static Calibration known;
  std::string name = fmt::format("{}:{}", context.path(), context.device_index());
  if (known.device == name) return known;
  Device& device = context.device();
  Calibration found = {std::move(name), kLeastBytes, 0};
  for (;;) {
    const Buffer from(device, found.bytes), to(device, found.bytes);
    found.copy_ns = timed_copy(device, from, to);
    const uint64_t next = found.bytes * 2;
    if (found.copy_ns >= kStepNs || next > kMostBytes || next > device.info().max_buffer_bytes / 4) break;
    found.bytes = next;
  }
  return known = std::move(found);
}

}  // namespace

Delay::Delay(Context& context)
    : copy_ns_(calibrated(context).copy_ns),
      from_(context.device(), calibrated(context).bytes),
      to_(context.device(), from_.bytes) {}

void Delay::enqueue(Stream& stream, uint64_t microseconds) {
  const uint64_t ns = std::min(microseconds * 1000, kMostCopies * copy_ns_);
  for (uint64_t left = ns; left >= 1000;) {
    const uint64_t part = std::min(left, copy_ns_);
    const auto bytes = static_cast<uint64_t>(static_cast<double>(from_.bytes) * static_cast<double>(part) /
                                             static_cast<double>(copy_ns_));
    stream.copy(to_.get(), 0, from_.get(), 0, std::min(bytes, from_.bytes));
    left -= part;
  }
}

namespace {

struct Tries {
  unsigned pending;     // attempts in which work was still pending after `action`
  unsigned long_polls;  // polls that took longer than kLateNs
};

// Counts the attempts in which work that was enqueued before `action` is still pending after
// `action`. Stops when the count reaches `enough`.
Tries try_pending(Context& context, unsigned enough, const std::function<void(Stream& busy)>& action) {
  Delay delay(context);
  Stream stream(context.device());
  Tries tries = {0, 0};
  for (unsigned attempt = 0; attempt < kDelayAttempts && tries.pending < enough; ++attempt) {
    delay.enqueue(stream, longer_delay(attempt));
    action(stream);
    const uint64_t begin = now_ns();
    const bool pending = stream.wait_for(0) == BP_TIMEOUT;
    tries.pending += pending ? 1 : 0;
    tries.long_polls += now_ns() - begin > kLateNs ? 1 : 0;
    stream.wait();
  }
  return tries;
}

}  // namespace

uint64_t longer_delay(unsigned attempt) { return std::min<uint64_t>(uint64_t{4000} << std::min(attempt, 6u), 200000); }

void require_no_wait(Context& context, std::string_view slot, const std::function<void(Stream& busy)>& action) {
  if (context.device().has(BP_CAP_SYNCHRONOUS)) return;  // a synchronous device never has pending work
  for (unsigned round = 0; round < kDelayRounds; ++round) {
    if (try_pending(context, 1, action).pending != 0) return;
    // On a loaded machine, the work may complete before the poll. So the case fails only if at
    // least half of the attempts without `action` find the work pending.
    const Tries nothing = try_pending(context, kDelayAttempts / 2, [](Stream&) {});
    if (nothing.pending >= kDelayAttempts / 2)
      context.fail("{} waits for the device: work was never pending when it returned", slot);
    if (nothing.pending == 0 && nothing.long_polls >= kDelayAttempts / 2)
      context.fail(
          "stream_wait with timeout 0 waits for the device: it never returned TIMEOUT, and lasted as long as the work");
  }
  context.suspect("the device ends 200 milliseconds of copies before the query: nothing can be concluded");
}

}  // namespace backplane::conformance
