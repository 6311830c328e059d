// SPDX-License-Identifier: Apache-2.0
// The progress of a stream: a timeline semaphore that streams and the host wait on.
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
  // The semaphore's value before any work. It is not 0 if the semaphore is reused.
  uint64_t start() const { return start_; }
  // Blocks the host until the semaphore reaches the submitted `value`. Returns OK, TIMEOUT, or the
  // device's failure.
  kit::Status wait(uint64_t value, uint64_t timeout_ns);
  // Waits until no work up to `value` is running, regardless of the state of stream and device.
  void drain(uint64_t value);
  // Whether `value` has been reached; does not wait.
  bool reached(uint64_t value);

 private:
  kit::Status wait_semaphore(uint64_t value, uint64_t timeout_ns);
  Timeline(LogicalDevice& device, VkSemaphore semaphore) : device_(device), semaphore_(semaphore) {}

  LogicalDevice& device_;
  const VkSemaphore semaphore_;
  uint64_t start_ = 0;
  std::atomic<uint64_t> seen_{0};  // the highest value seen
};

// A point in a stream. A point without a timeline counts as passed.
struct Point {
  std::shared_ptr<Timeline> timeline;
  uint64_t value = 0;
};

}  // namespace backplane::vulkan
