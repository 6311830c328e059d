// SPDX-License-Identifier: Apache-2.0
// Tracks which work a host knows to have ended. Every stream is a line of points. A successful wait
// covers points of its own line. It also covers points of other lines, through events that streams
// waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace backplane::core::layers {

// A point of a line stands for all work up to it.
struct Point {
  uint64_t line;
  uint64_t at;
};
// At most one point per line.
using Clock = std::vector<Point>;

// Raises `clock` to cover `point`.
void raise(Clock& clock, Point point);

class Ledger {
 public:
  // A device with BP_CAP_SYNCHRONOUS never has pending work.
  explicit Ledger(bool synchronous) : synchronous_(synchronous) {}

  uint64_t open_line();
  // Call when the line's stream was destroyed: none of its work is pending.
  void close_line(uint64_t line) { lines_.erase(line); }
  // Counts an enqueue on the line; returns its point.
  Point enqueue(uint64_t line);
  // Sets `clock` to what a wait for all work on the line covers. Needs no memory if `clock` has
  // room for `clock_size` points.
  void now(uint64_t line, Clock& clock) const;
  std::size_t clock_size(uint64_t line) const { return lines_.at(line).behind.size() + 1; }
  // Makes room so that `order_behind` needs no memory. Only one call at a time may enqueue on the
  // line.
  void expect_order(uint64_t line, const Clock& clock);
  // Later work of the line starts after `clock`.
  void order_behind(uint64_t line, const Clock& clock);
  // Call when a wait that covers `clock` succeeded.
  void passed(const Clock& clock);
  // Call when the line failed and none of its work accesses memory any more.
  void failed(uint64_t line, uint64_t at) { pass({line, at}); }
  // Call when the device is lost, or there was no memory to record a wait: from now on nothing
  // counts as pending.
  void lose() { lost_ = true; }

  bool pending(Point point) const;
  // Also drops the points that are not pending.
  bool pending(Clock& clock) const;
  bool idle(uint64_t line) const;
  uint64_t enqueued(uint64_t line) const { return lines_.at(line).enqueued; }

 private:
  struct Line {
    uint64_t enqueued = 0, completed = 0;
    Clock behind;  // points of other lines, after which this line's later work starts
  };
  void pass(Point point);

  std::unordered_map<uint64_t, Line> lines_;
  uint64_t next_ = 1;
  const bool synchronous_;
  bool lost_ = false;
};

}  // namespace backplane::core::layers
