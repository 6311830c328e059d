// SPDX-License-Identifier: Apache-2.0
// How far a stream has come: one timeline semaphore, which streams and the host wait on.
#pragma once

#include "runtime/logical_device.hpp"

namespace backplane::vulkan {

class Timeline {
 public:
  static kit::Result<std::shared_ptr<Timeline>> create(LogicalDevice& device);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  VkSemaphore semaphore() const { return semaphore_; }
  // The value before any work; not 0 if another stream had the semaphore.
  uint64_t start() const { return start_; }
  // The host waits until the semaphore has `value`, which was submitted; TIMEOUT, or the device's failure.
  kit::Status wait(uint64_t value, uint64_t timeout_ns);
  // Until nothing that was submitted up to `value` runs, whatever is wrong with stream or device.
  void drain(uint64_t value);
  // Whether `value` is reached, without waiting.
  bool reached(uint64_t value);

 private:
  kit::Status wait_semaphore(uint64_t value, uint64_t timeout_ns);
  Timeline(LogicalDevice& device, VkSemaphore semaphore) : device_(device), semaphore_(semaphore) {}

  LogicalDevice& device_;
  const VkSemaphore semaphore_;
  uint64_t start_ = 0;
  std::atomic<uint64_t> seen_{0};  // the highest value that the semaphore was known to have
};

// A place in a stream. Without a timeline: passed.
struct Point {
  std::shared_ptr<Timeline> timeline;
  uint64_t value = 0;
};

}  // namespace backplane::vulkan
