// SPDX-License-Identifier: Apache-2.0
// A device of Vulkan: its functions, its queues, what of its memory is in use, and whether it is lost.
#pragma once

#include "instance.hpp"

namespace backplane::vulkan {

class LogicalDevice {
 public:
  static kit::Result<std::unique_ptr<LogicalDevice>> create(std::shared_ptr<const Instance> instance, uint32_t index);
  ~LogicalDevice();
  LogicalDevice(const LogicalDevice&) = delete;
  LogicalDevice& operator=(const LogicalDevice&) = delete;

  const PhysicalDevice& physical() const { return instance_->devices()[index_]; }
  const DeviceApi& api() const { return api_; }
  VkDevice handle() const { return handle_; }
  VkPipelineLayout pipeline_layout() const { return pipeline_layout_; }  // of every kernel: one address is pushed

  // Turns a result into a status, and remembers a loss.
  kit::Status check(VkResult result, const char* what);
  // DEVICE_LOST, or what the validation layer found; else OK.
  kit::Status health() const;
  bool lost() const { return lost_.load(std::memory_order_acquire); }

  // Bytes of a memory heap that buffers take.
  std::atomic<uint64_t>& used(uint32_t heap) { return used_[heap]; }

  // A queue for a stream, dealt in turn.
  VkQueue next_queue() { return queues_[turn_.fetch_add(1, std::memory_order_relaxed) % queues_.size()]; }
  kit::Status submit(VkQueue queue, const VkSubmitInfo& info);
  // Waits for all work of all queues; of a lost device too, which ends it in finite time.
  void wait_idle();

  // A timeline semaphore that no work is pending on; from a list of those given back, or new. They are destroyed with the
  // device only: Mesa 22.3 still touches one shortly after a wait for it has returned.
  kit::Result<VkSemaphore> take_semaphore();
  void give_semaphore(VkSemaphore semaphore);

  // A pool of one timestamp; from a list of those given back, or new.
  kit::Result<VkQueryPool> take_query();
  void give_query(VkQueryPool pool);

 private:
  LogicalDevice(std::shared_ptr<const Instance> instance, uint32_t index)
      : instance_(std::move(instance)), index_(index) {}
  kit::Status start();

  std::shared_ptr<const Instance> instance_;
  const uint32_t index_;
  DeviceApi api_;
  VkDevice handle_ = VK_NULL_HANDLE;
  VkPipelineLayout pipeline_layout_ = VK_NULL_HANDLE;
  std::vector<VkQueue> queues_;
  std::mutex submit_mutex_;  // Vulkan wants one submission at a time to a queue, and with a semaphore
  std::atomic<uint32_t> turn_{0};
  std::atomic<bool> lost_{false};
  std::atomic<uint64_t> used_[VK_MAX_MEMORY_HEAPS] = {};
  std::mutex lists_mutex_;
  std::vector<VkSemaphore> semaphores_;
  std::vector<VkQueryPool> queries_;
};

}  // namespace backplane::vulkan
