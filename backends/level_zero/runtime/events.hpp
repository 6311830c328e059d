// SPDX-License-Identifier: Apache-2.0
// Events, which are points in queues. The class Events reuses events, because drivers take long to
// create them.
#pragma once

#include <chrono>
#include <deque>

#include "runtime/context.hpp"

namespace backplane::level_zero {

class Events;

// An event that a command list signals. After the last reference is destroyed, Events can reuse the
// event.
struct Point {
  ze_event_handle_t event = nullptr;
  bool timed = false;
  bool submitted = false;  // a command list contains the command that signals the event
  std::chrono::steady_clock::time_point enqueued{};
};
using Mark = std::shared_ptr<Point>;

class Events {
 public:
  explicit Events(const Context& context) : context_(context) {}
  ~Events();
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  // Returns an event that is not signaled. The event has timestamps if `timed` is set.
  kit::Result<Mark> take(bool timed);

 private:
  // The events with timestamps, or the events without timestamps.
  struct Kind {
    std::vector<ze_event_pool_handle_t> pools;
    std::vector<ze_event_handle_t> all;
    std::vector<ze_event_handle_t> free;     // not signaled
    std::deque<ze_event_handle_t> released;  // events that a command list may still signal
  };
  static constexpr uint32_t kPerPool = 64;

  // Moves released events that have been signaled to `free`.
  kit::Status collect(Kind& kind) const;
  kit::Status grow(Kind& kind, bool timed) const;
  void give_back(const Point& point);

  const Context& context_;
  std::mutex mutex_;
  Kind kinds_[2];  // the index is Point::timed
};

}  // namespace backplane::level_zero
