// SPDX-License-Identifier: Apache-2.0
// The progress of a stream, as a timeline semaphore that the host and other streams can wait for.
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
  // The semaphore's value before the stream's first batch. A reused semaphore keeps the value that its previous stream
  // reached.
  uint64_t start() const { return start_; }
  // Blocks the host until the semaphore reaches `value`, which must have been submitted. Returns
  // OK, TIMEOUT, or the device's failure.
  kit::Status wait(uint64_t value, uint64_t timeout_ns);
  // Waits until all work up to `value` has completed, even if the stream has failed or the device
  // is lost.
  void drain(uint64_t value);
  // Returns whether the semaphore has reached `value`, without waiting.
  bool reached(uint64_t value);

 private:
  kit::Status wait_semaphore(uint64_t value, uint64_t timeout_ns);
  Timeline(LogicalDevice& device, VkSemaphore semaphore) : device_(device), semaphore_(semaphore) {}

  LogicalDevice& device_;
  const VkSemaphore semaphore_;
  uint64_t start_ = 0;
  std::atomic<uint64_t> seen_{0};  // highest value that was read from the semaphore
};

// A point in a stream, which has completed once the timeline reaches `value`.
struct Point {
  std::shared_ptr<Timeline> timeline;
  uint64_t value = 0;
};

}  // namespace backplane::vulkan
