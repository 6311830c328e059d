// SPDX-License-Identifier: Apache-2.0
// Events, which are points in streams. The class Events reuses events, because drivers take long to
// create them.
#pragma once

#include "gpu_host/context.hpp"

namespace backplane::gpu_host {

// An event of the driver. After the last reference is destroyed, Events can reuse the event. The
// reuse does not affect streams that wait for the earlier point.
struct Point {
  Handle event = nullptr;
  bool timed = false;
};
using Mark = std::shared_ptr<const Point>;

class Events {
 public:
  explicit Events(const Context& context) : context_(context) {}
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  // Returns an event that measures time if `timed` is set. The caller has entered the context.
  kit::Result<Mark> take(bool timed);

 private:
  void give_back(const Point& point);

  const Context& context_;
  std::mutex mutex_;
  std::vector<Handle> free_[2];  // the index is Point::timed
};

}  // namespace backplane::gpu_host
