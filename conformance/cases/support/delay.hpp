// SPDX-License-Identifier: Apache-2.0
// Real work that keeps a stream busy for about so long as is asked.
#pragma once

#include "harness/context.hpp"

namespace bp::conformance {

class Delay {
 public:
  // Measures how long a copy takes on this device.
  explicit Delay(Context& context);
  // Enqueues copies that take about `microseconds` on an idle device; far fewer tasks than any queue holds.
  void enqueue(Stream& stream, uint64_t microseconds);
  // What one enqueued task takes, at least; the finest delay.
  uint64_t step_ns() const { return copy_ns_; }

 private:
  Buffer from_, to_;
  uint64_t copy_ns_ = 0;
};

uint64_t now_ns();

}  // namespace bp::conformance
