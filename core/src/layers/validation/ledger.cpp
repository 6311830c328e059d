// SPDX-License-Identifier: Apache-2.0
// Implements the ledger of points and clocks.
#include "layers/validation/ledger.hpp"

#include <algorithm>

namespace backplane::core::layers {

void raise(Clock& clock, Point point) {
  for (Point& known : clock) {
    if (known.line != point.line) continue;
    known.at = std::max(known.at, point.at);
    return;
  }
  clock.push_back(point);
}

uint64_t Ledger::open_line() {
  lines_.emplace(next_, Line{});
  return next_++;
}

Point Ledger::enqueue(uint64_t line) {
  Line& own = lines_.at(line);
  ++own.enqueued;
  if (synchronous_) own.completed = own.enqueued;
  return {line, own.enqueued};
}

void Ledger::now(uint64_t line, Clock& clock) const {
  const Line& own = lines_.at(line);
  clock.assign(own.behind.begin(), own.behind.end());
  clock.push_back({line, own.enqueued});
}

void Ledger::expect_order(uint64_t line, const Clock& clock) {
  Clock& behind = lines_.at(line).behind;
  behind.reserve(behind.size() + clock.size());
}

void Ledger::order_behind(uint64_t line, const Clock& clock) {
  Line& own = lines_.at(line);
  for (const Point& point : clock) {
    if (point.line != line && pending(point)) raise(own.behind, point);
  }
  (void)pending(own.behind);
}

void Ledger::passed(const Clock& clock) {
  for (const Point& point : clock) pass(point);
}

void Ledger::pass(Point point) {
  const auto line = lines_.find(point.line);
  if (line != lines_.end()) line->second.completed = std::max(line->second.completed, point.at);
}

bool Ledger::pending(Point point) const {
  if (lost_) return false;
  const auto line = lines_.find(point.line);
  return line != lines_.end() && line->second.completed < point.at;
}

bool Ledger::pending(Clock& clock) const {
  std::erase_if(clock, [this](const Point& point) { return !pending(point); });
  return !clock.empty();
}

bool Ledger::idle(uint64_t line) const { return !pending(Point{line, lines_.at(line).enqueued}); }

}  // namespace backplane::core::layers
