// SPDX-License-Identifier: Apache-2.0
// A VkDevice with its functions, queues and memory accounting, and a record of whether the device
// is lost.
#pragma once

#include <array>

#include "runtime/instance.hpp"

namespace backplane::vulkan {

// Environment variable. With the value `off`, all copies use the kernels' queue. With the value
// `all`, each copy between host and device is recorded in a batch for the copy queue. If the device
// has no copy queue, that batch is submitted to the kernels' queue.
inline constexpr const char* kCopyQueueSetting = "BACKPLANE_VULKAN_COPY_QUEUE";

// A queue, with the pipeline stages and access flags of its commands.
struct Queue {
  VkQueue handle = VK_NULL_HANDLE;
  std::mutex* mutex = nullptr;  // held during submissions, which must not overlap
  uint32_t family = 0;
  uint32_t index = 0;  // the number of the queue in its family
  VkPipelineStageFlags stages = 0;
  VkAccessFlags reads = 0, writes = 0;
};

class LogicalDevice {
 public:
  static kit::Result<std::unique_ptr<LogicalDevice>> create(std::shared_ptr<const Instance> instance, uint32_t index);
  ~LogicalDevice();
  LogicalDevice(const LogicalDevice&) = delete;
  LogicalDevice& operator=(const LogicalDevice&) = delete;

  const Instance& instance() const { return *instance_; }
  const PhysicalDevice& physical() const { return instance_->devices()[index_]; }
  const DeviceApi& api() const { return api_; }
  VkDevice handle() const { return handle_; }
  // The layout of all pipelines. Its only push constant is the address of a kernel's parameters.
  VkPipelineLayout pipeline_layout() const { return pipeline_layout_; }

  // Converts the result of the Vulkan function `what` to a status, and records a device loss.
  kit::Status check(VkResult result, const char* what);
  // Returns DEVICE_LOST if the device is lost, INTERNAL if the validation layer has reported a
  // message, and otherwise OK.
  kit::Status health() const;
  bool lost() const { return lost_.load(std::memory_order_acquire); }

  // Returns the memory type for buffers of `kind` (BP_MEMORY_*), or -1 if there is none.
  int memory_type(uint32_t kind) const { return physical().memory_type(kind, buffer_types_); }
  VkBufferCreateInfo buffer_info(uint64_t bytes) const;

  // Number of bytes that buffers occupy in memory heap `heap`.
  std::atomic<uint64_t>& used(uint32_t heap) { return used_[heap]; }
  // Number of live memory allocations. The driver's limit is maxMemoryAllocationCount.
  std::atomic<uint32_t>& allocations() { return allocations_; }

  // Returns the queue for the commands of a new stream: the queue with the fewest streams among the queues that are not
  // reserved. The stream must pass the queue to give_queue() when the stream ends.
  Queue take_queue();
  void give_queue(const Queue& queue);
  // Reserves the queue for the calling stream until this stream ends. Returns false, without reserving, if another
  // stream also uses the queue, or if every other queue is reserved.
  bool reserve_queue(const Queue& queue);
  // Returns the queue for a stream's large copies between host and device, in round-robin order.
  Queue next_copy_queue() {
    return copy_queues_[next_copy_.fetch_add(1, std::memory_order_relaxed) % copy_queues_.size()];
  }
  // The first queue of the kernels' family.
  const Queue& first_queue() const { return queues_.front(); }
  // Minimum size in bytes of a copy between host and device that uses the copy queue. UINT64_MAX if
  // no copy uses that queue.
  uint64_t copy_queue_threshold() const { return copy_queue_threshold_; }
  kit::Status submit(const Queue& queue, const VkSubmitInfo& info);
  // Waits until all queues are idle. The wait also ends if the device is lost.
  void wait_idle();

  // Returns a new or reused timeline semaphore that has no pending work. Semaphores are destroyed
  // only with the device, because Mesa 22.3 may access a semaphore shortly after a wait for that
  // semaphore has returned.
  kit::Result<VkSemaphore> take_semaphore();
  void give_semaphore(VkSemaphore semaphore);

  // Returns a new or reused query pool for one timestamp.
  kit::Result<VkQueryPool> take_query();
  void give_query(VkQueryPool pool);

 private:
  LogicalDevice(std::shared_ptr<const Instance> instance, uint32_t index)
      : instance_(std::move(instance)), index_(index) {}
  kit::Status start();
  static constexpr uint32_t kMaxQueues = 8;  // maximum number of queues that are used per family
  kit::Status choose_copy_queue();
  void get_queues(uint32_t family, uint32_t count, std::vector<Queue>& queues);
  kit::Status find_buffer_types();

  std::shared_ptr<const Instance> instance_;
  const uint32_t index_;
  DeviceApi api_;
  VkDevice handle_ = VK_NULL_HANDLE;
  VkPipelineLayout pipeline_layout_ = VK_NULL_HANDLE;
  uint32_t buffer_types_ = 0;
  std::vector<Queue> queues_, copy_queues_;
  uint64_t copy_queue_threshold_ = UINT64_MAX;
  uint32_t families_[2] = {};
  uint32_t family_count_ = 1;
  std::array<std::mutex, 2 * kMaxQueues> queue_mutexes_;
  std::atomic<uint32_t> next_copy_{0};
  std::atomic<bool> lost_{false};
  std::atomic<uint64_t> used_[VK_MAX_MEMORY_HEAPS] = {};
  std::atomic<uint32_t> allocations_{0};
  std::mutex lists_mutex_;
  std::array<uint32_t, kMaxQueues> users_{};  // the number of streams of each queue in queues_
  std::array<bool, kMaxQueues> reserved_{};
  std::vector<VkSemaphore> semaphores_;
  std::vector<VkQueryPool> queries_;
};

}  // namespace backplane::vulkan
