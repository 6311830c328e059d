// SPDX-License-Identifier: Apache-2.0
// Real work that keeps a stream busy for about so long as is asked, and what can be told with it without trusting a clock.
#pragma once

#include <functional>
#include <string_view>

#include "harness/context.hpp"

namespace backplane::conformance {

class Delay {
 public:
  // The first of a process measures how long a copy takes on the device.
  explicit Delay(Context& context);
  // Enqueues copies that take about `microseconds` on an idle device, at most 200 of about a millisecond. All go to one buffer:
  // streams without an order between them need one each.
  void enqueue(Stream& stream, uint64_t microseconds);
  // What one copy takes, about.
  uint64_t copy_ns() const { return copy_ns_; }

 private:
  uint64_t copy_ns_;
  Buffer from_, to_;
};

uint64_t now_ns();

constexpr uint64_t kLateNs = 10'000'000;  // what device.h allows a wait beyond its time

// What cannot be seen on a busy machine with milliseconds of work is tried again with more, up to a fifth of a second.
constexpr unsigned kDelayAttempts = 24;
constexpr unsigned kDelayRounds = 4;      // of so many attempts, where nothing can be told
uint64_t longer_delay(unsigned attempt);  // in microseconds

// Ends the case as failed if `action` always returns with the device idle: it waited. A machine under load may hide that
// it does not wait in a few tries, and never shows a wait that was not.
void require_no_wait(Context& context, std::string_view slot, const std::function<void(Stream& busy)>& action);

}  // namespace backplane::conformance
