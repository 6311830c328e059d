// SPDX-License-Identifier: Apache-2.0
#include "runtime/timeline.hpp"

#include <backplane/kit/timeline.hpp>

namespace backplane::vulkan {

kit::Result<std::shared_ptr<Timeline>> Timeline::create(LogicalDevice& device) {
  auto semaphore = device.take_semaphore();
  if (!semaphore.ok()) return semaphore.status();
  std::shared_ptr<Timeline> timeline(new Timeline(device, semaphore.value()));
  kit::Status status =
      device.check(device.api().vkGetSemaphoreCounterValue(device.handle(), semaphore.value(), &timeline->start_),
                   "vkGetSemaphoreCounterValue");
  if (!status.ok()) return status;
  timeline->seen_.store(timeline->start_, std::memory_order_relaxed);
  return timeline;
}

Timeline::~Timeline() { device_.give_semaphore(semaphore_); }

bool Timeline::reached(uint64_t value) {
  if (value <= seen_.load(std::memory_order_acquire)) return true;
  uint64_t now = 0;
  const VkResult result = device_.api().vkGetSemaphoreCounterValue(device_.handle(), semaphore_, &now);
  if (!device_.check(result, "vkGetSemaphoreCounterValue").ok()) return false;
  uint64_t known = seen_.load(std::memory_order_relaxed);
  while (known < now && !seen_.compare_exchange_weak(known, now, std::memory_order_acq_rel)) {
  }
  return value <= now;
}

kit::Status Timeline::wait(uint64_t value, uint64_t timeout_ns) {
  kit::Status status = wait_semaphore(value, timeout_ns);
  return status.ok() ? device_.health() : status;
}

void Timeline::drain(uint64_t value) {
  const bool ended = !device_.lost() && wait_semaphore(value, BP_WAIT_FOREVER).ok();
  if (!ended) device_.wait_idle();  // work of a lost device may still be running
}

kit::Status Timeline::wait_semaphore(uint64_t value, uint64_t timeout_ns) {
  auto info = chained<VkSemaphoreWaitInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO);
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore_;
  info.pValues = &value;
  const kit::Deadline deadline(timeout_ns);
  // If vkWaitSemaphores fails for lack of memory, the loop polls the semaphore instead.
  for (uint64_t time = timeout_ns;; time = 0) {
    if (device_.lost()) return device_.health();
    if (reached(value)) return {};
    if (timeout_ns == 0) return device_.lost() ? device_.health() : kit::timed_out();
    const VkResult result = device_.api().vkWaitSemaphores(device_.handle(), &info, time);
    if (device_.check(result, "vkWaitSemaphores").ok()) return {};
    if (!device_.lost() && !deadline.sleep(std::chrono::milliseconds(1))) return kit::timed_out();
  }
}

}  // namespace backplane::vulkan
