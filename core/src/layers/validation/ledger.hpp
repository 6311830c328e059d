// SPDX-License-Identifier: Apache-2.0
// Records which work is known to have completed. The enqueued commands of each stream are numbered.
// A successful wait covers the earlier commands of its stream. If that stream has waited for events
// of other streams, the wait also covers the commands before those events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace backplane::core::layers {

// A point covers the commands of one stream up to and including number `at`. `line` identifies the stream, and is
// unique even if a handle is reused.
struct Point {
  uint64_t line;
  uint64_t at;
};
// A set of points, at most one per stream.
using Clock = std::vector<Point>;

// Changes `clock` so that it covers `point`.
void raise(Clock& clock, Point point);

class Ledger {
 public:
  // A device with BP_CAP_SYNCHRONOUS never has pending work.
  explicit Ledger(bool synchronous) : synchronous_(synchronous) {}

  uint64_t open_line();
  // Call this function after the stream was destroyed. From then on, none of the stream's work is
  // pending.
  void close_line(uint64_t line) { lines_.erase(line); }
  // Counts a command on the stream, and returns its point.
  Point enqueue(uint64_t line);
  // Sets `clock` to the points that a wait for all work on the stream covers. Allocates nothing if
  // `clock` has capacity for `clock_size` points.
  void now(uint64_t line, Clock& clock) const;
  std::size_t lines() const { return lines_.size(); }
  std::size_t clock_size(uint64_t line) const { return lines_.at(line).behind.size() + 1; }
  // Reserves capacity so that `order_behind` allocates nothing. Only one call at a time may enqueue
  // on the stream.
  void expect_order(uint64_t line, const Clock& clock);
  // Records that work enqueued on the stream after this call starts after all points of `clock`
  // have completed.
  void order_behind(uint64_t line, const Clock& clock);
  // Call this function when a wait that covers `clock` has succeeded.
  void passed(const Clock& clock);
  // Call this function when the stream has failed and none of its work accesses memory any longer.
  void failed(uint64_t line, uint64_t at) { pass({line, at}); }
  // Call this function when the device is lost, or when there was no memory to record a wait. After
  // the call, no work is considered pending.
  void lose() { lost_ = true; }

  bool pending(Point point) const;
  // Removes the points that have completed, and returns whether any point remains.
  bool pending(Clock& clock) const;
  bool idle(uint64_t line) const;
  uint64_t enqueued(uint64_t line) const { return lines_.at(line).enqueued; }

 private:
  struct Line {
    uint64_t enqueued = 0, completed = 0;
    Clock behind;  // points of other streams that must complete before the next work on this stream starts
  };
  void pass(Point point);

  std::unordered_map<uint64_t, Line> lines_;
  uint64_t next_ = 1;
  const bool synchronous_;
  bool lost_ = false;
};

}  // namespace backplane::core::layers
