// SPDX-License-Identifier: Apache-2.0
// Work that keeps a stream busy for about a given time, and checks that use such work instead of a
// clock.
#pragma once

#include <functional>
#include <string_view>

#include "harness/context.hpp"

namespace backplane::conformance {

class Delay {
 public:
  // The first Delay of a process measures the time of a copy on the device.
  explicit Delay(Context& context);
  // Enqueues copies that take about `microseconds` on an idle device: at most 200 copies of about a
  // millisecond. All write to one buffer, so concurrent streams need one Delay each.
  void enqueue(Stream& stream, uint64_t microseconds);
  // The approximate time of one copy.
  uint64_t copy_ns() const { return copy_ns_; }

 private:
  uint64_t copy_ns_;
  Buffer from_, to_;
};

uint64_t now_ns();

constexpr uint64_t kLateNs = 10'000'000;  // a wait may exceed its timeout by this much (device.h)

// On a busy machine milliseconds of work may show nothing; checks then try again with up to 200 ms.
constexpr unsigned kDelayAttempts = 24;
constexpr unsigned kDelayRounds = 4;      // repetitions of all attempts while results are inconclusive
uint64_t longer_delay(unsigned attempt);  // returns microseconds

// Fails the case if the device is idle whenever `action` returns, because the action then waited.
// Load may make the device look idle in a few attempts; only a wait does so in all of them.
void require_no_wait(Context& context, std::string_view slot, const std::function<void(Stream& busy)>& action);

}  // namespace backplane::conformance
