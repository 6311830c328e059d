// SPDX-License-Identifier: Apache-2.0
// What a host can know to have ended: every stream is a line of points, and a wait that succeeded covers points of its own line
// and, through events that streams waited on, of others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace backplane::core::layers {

// A point of a line: the work up to it.
struct Point {
  uint64_t line;
  uint64_t at;
};
// One point each of some lines.
using Clock = std::vector<Point>;

// Raises `clock` to hold `point` too.
void raise(Clock& clock, Point point);

class Ledger {
 public:
  // A device with BP_CAP_SYNCHRONOUS has nothing pending, ever.
  explicit Ledger(bool synchronous) : synchronous_(synchronous) {}

  uint64_t open_line();
  // The line's stream was destroyed: nothing of it is pending any more.
  void close_line(uint64_t line) { lines_.erase(line); }
  // One more enqueue on the line: the point that it ends at.
  Point enqueue(uint64_t line);
  // What a wait for all that is enqueued on the line covers, in place of what `clock` held; into room for `clock_size` points it
  // needs no memory.
  void now(uint64_t line, Clock& clock) const;
  std::size_t clock_size(uint64_t line) const { return lines_.at(line).behind.size() + 1; }
  // Makes room for `order_behind`, which needs no memory then. The line is enqueued to by one call at a time.
  void expect_order(uint64_t line, const Clock& clock);
  // Later work of the line starts behind `clock`.
  void order_behind(uint64_t line, const Clock& clock);
  // A wait that covers `clock` succeeded.
  void passed(const Clock& clock);
  // The line failed, and no work of it touches memory again.
  void failed(uint64_t line, uint64_t at) { pass({line, at}); }
  // The device is lost, or what a wait covered could not be noted: nothing is said to be pending from now on.
  void lose() { lost_ = true; }

  bool pending(Point point) const;
  // Also forgets what is not.
  bool pending(Clock& clock) const;
  bool idle(uint64_t line) const;
  uint64_t enqueued(uint64_t line) const { return lines_.at(line).enqueued; }

 private:
  struct Line {
    uint64_t enqueued = 0, completed = 0;
    Clock behind;  // of other lines
  };
  void pass(Point point);

  std::unordered_map<uint64_t, Line> lines_;
  uint64_t next_ = 1;
  const bool synchronous_;
  bool lost_ = false;
};

}  // namespace backplane::core::layers
