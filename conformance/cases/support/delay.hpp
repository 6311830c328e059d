// SPDX-License-Identifier: Apache-2.0
// Enqueues work that keeps a stream busy for about a given time. Checks test whether this work is
// still pending, instead of measuring time.
#pragma once

#include <functional>
#include <string_view>

#include "harness/clock.hpp"
#include "harness/context.hpp"

namespace backplane::conformance {

class Delay {
 public:
  // The first Delay in a process measures the time of a copy on the device.
  explicit Delay(Context& context);
  // Enqueues copies that take about `microseconds` in total on an idle device. There are at most
  // 200 copies of about a millisecond each. All copies write to one buffer, so each concurrent
  // stream needs its own Delay.
  void enqueue(Stream& stream, uint64_t microseconds);
  // Returns the approximate time of a copy of the whole buffer in nanoseconds.
  uint64_t copy_ns() const { return copy_ns_; }

 private:
  uint64_t copy_ns_;
  Buffer from_, to_;
};

constexpr uint64_t kLateNs = 10'000'000;  // maximum time by which a wait may exceed its timeout (device.h)

// Number of attempts of one check. On a busy machine a few milliseconds of work may complete too
// early, so later attempts use up to 200 ms.
constexpr unsigned kDelayAttempts = 24;
constexpr unsigned kDelayRounds = 4;      // repetitions of all attempts while the result is inconclusive
uint64_t longer_delay(unsigned attempt);  // returns microseconds

// Fails the case if `action` waits for the device. After a call that waits, the device is always
// idle. Load may also make the device idle, so the case fails only if attempts without `action`
// find work pending.
void require_no_wait(Context& context, std::string_view slot, const std::function<void(Stream& busy)>& action);

}  // namespace backplane::conformance
