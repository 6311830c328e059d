// SPDX-License-Identifier: Apache-2.0
#include "timeline.hpp"

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
  if (value == kNever) return false;
  uint64_t now = 0;
  const VkResult result = device_.api().vkGetSemaphoreCounterValue(device_.handle(), semaphore_, &now);
  if (!device_.check(result, "vkGetSemaphoreCounterValue").ok()) return false;
  uint64_t known = seen_.load(std::memory_order_relaxed);
  while (known < now && !seen_.compare_exchange_weak(known, now, std::memory_order_acq_rel)) {
  }
  return value <= now;
}

kit::Status Timeline::wait(uint64_t value, uint64_t timeout_ns) {
  if (kit::Status status = device_.health(); !status.ok()) return status;
  if (value == kNever) return failure();
  kit::Status status = wait_semaphore(value, timeout_ns);
  return status.ok() ? device_.health() : status;
}

void Timeline::drain(uint64_t value) {
  const bool ended = !device_.lost() && wait_semaphore(value, BP_WAIT_FOREVER).ok();
  if (!ended) device_.wait_idle();  // a lost device may be at work yet
}

kit::Status Timeline::wait_semaphore(uint64_t value, uint64_t timeout_ns) {
  if (reached(value)) return {};
  if (device_.lost()) return device_.health();
  if (timeout_ns == 0) return kit::timed_out();
  auto info = chained<VkSemaphoreWaitInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO);
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore_;
  info.pValues = &value;
  return device_.check(device_.api().vkWaitSemaphores(device_.handle(), &info, timeout_ns), "vkWaitSemaphores");
}

void Timeline::fail(kit::Status cause) {
  std::lock_guard lock(mutex_);
  if (failed_.load(std::memory_order_relaxed)) return;
  failure_ = std::move(cause);
  failed_.store(true, std::memory_order_release);
}

kit::Status Timeline::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace backplane::vulkan
