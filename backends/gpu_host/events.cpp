// SPDX-License-Identifier: Apache-2.0
#include "gpu_host/events.hpp"

#include "gpu_host/fork.hpp"

namespace backplane::gpu_host {

kit::Result<Mark> Events::take(bool timed) {
  auto point = std::make_unique<Point>(Point{nullptr, timed});
  {
    std::lock_guard lock(mutex_);
    std::vector<Handle>& free = free_[timed ? 1 : 0];
    if (!free.empty()) {
      point->event = free.back();
      free.pop_back();
    }
  }
  if (point->event == nullptr) {
    auto made = context_.stack().create_event(timed);
    if (!made.ok()) return made.status();
    point->event = made.value();
  }
  return Mark(point.release(), [this](const Point* last) {
    give_back(*last);
    delete last;
  });
}

void Events::give_back(const Point& point) {
  // Does nothing in a forked child. If a thread of the parent held the mutex during the fork, no
  // thread of the child can unlock it.
  if (!after_fork(context_.stack().plugin()).ok()) return;
  std::lock_guard lock(mutex_);
  free_[point.timed ? 1 : 0].push_back(point.event);
}

}  // namespace backplane::gpu_host
