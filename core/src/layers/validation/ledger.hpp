// SPDX-License-Identifier: Apache-2.0
// Records which work a host knows to have ended. Every stream is a line of numbered points. A
// successful wait covers points of the stream's own line. If the stream has waited for events of
// other streams, the wait also covers points of their lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace backplane::core::layers {

// A point represents all work of the line up to and including number `at`.
struct Point {
  uint64_t line;
  uint64_t at;
};
// A set of points, at most one per line.
using Clock = std::vector<Point>;

// Changes `clock` so that it covers `point`.
void raise(Clock& clock, Point point);

class Ledger {
 public:
  // A device with BP_CAP_SYNCHRONOUS never has pending work.
  explicit Ledger(bool synchronous) : synchronous_(synchronous) {}

  uint64_t open_line();
  // Call this function after the line's stream was destroyed. None of the stream's work is pending
  // then.
  void close_line(uint64_t line) { lines_.erase(line); }
  // Counts an enqueue on the line, and returns its point.
  Point enqueue(uint64_t line);
  // Sets `clock` to the points that a wait for all work on the line covers. Allocates nothing if
  // `clock` has capacity for `clock_size` points.
  void now(uint64_t line, Clock& clock) const;
  std::size_t clock_size(uint64_t line) const { return lines_.at(line).behind.size() + 1; }
  // Reserves capacity so that `order_behind` allocates nothing. Only one call at a time may enqueue
  // on the line.
  void expect_order(uint64_t line, const Clock& clock);
  // Records that work enqueued on the line after this call starts after all points of `clock`.
  void order_behind(uint64_t line, const Clock& clock);
  // Call this function when a wait that covers `clock` has succeeded.
  void passed(const Clock& clock);
  // Call this function when the line has failed and none of its work accesses memory any longer.
  void failed(uint64_t line, uint64_t at) { pass({line, at}); }
  // Call this function when the device is lost, or when there was no memory to record a wait. After
  // the call, no work counts as pending.
  void lose() { lost_ = true; }

  bool pending(Point point) const;
  // Removes the points that are not pending, and returns whether any point remains.
  bool pending(Clock& clock) const;
  bool idle(uint64_t line) const;
  uint64_t enqueued(uint64_t line) const { return lines_.at(line).enqueued; }

 private:
  struct Line {
    uint64_t enqueued = 0, completed = 0;
    Clock behind;  // points of other lines that must be reached before the next work of this line starts
  };
  void pass(Point point);

  std::unordered_map<uint64_t, Line> lines_;
  uint64_t next_ = 1;
  const bool synchronous_;
  bool lost_ = false;
};

}  // namespace backplane::core::layers
