// SPDX-License-Identifier: Apache-2.0
// A VkDevice with its functions, queues and memory accounting. It records the loss of the device.
#pragma once

#include <array>

#include "runtime/instance.hpp"

namespace backplane::vulkan {

// Environment variable. With "off", copies share the kernels' queue. With "all", even the smallest
// copy between host and device is a separate batch, on the kernels' queue if there is no copy
// queue.
inline constexpr const char* kCopyQueueSetting = "BACKPLANE_VULKAN_COPY_QUEUE";

// A queue, with the pipeline stages and access flags that its family supports.
struct Queue {
  VkQueue handle = VK_NULL_HANDLE;
  std::mutex* mutex = nullptr;  // locked during submissions, which must not overlap
  uint32_t family = 0;
  VkPipelineStageFlags stages = 0;
  VkAccessFlags reads = 0, writes = 0;
};

class LogicalDevice {
 public:
  static kit::Result<std::unique_ptr<LogicalDevice>> create(std::shared_ptr<const Instance> instance, uint32_t index);
  ~LogicalDevice();
  LogicalDevice(const LogicalDevice&) = delete;
  LogicalDevice& operator=(const LogicalDevice&) = delete;

  const PhysicalDevice& physical() const { return instance_->devices()[index_]; }
  const DeviceApi& api() const { return api_; }
  VkDevice handle() const { return handle_; }
  VkPipelineLayout pipeline_layout() const { return pipeline_layout_; }  // of every kernel: pushes one address

  // Converts a result to a status, and records a device loss.
  kit::Status check(VkResult result, const char* what);
  // DEVICE_LOST, or the validation layer's first message; else OK.
  kit::Status health() const;
  bool lost() const { return lost_.load(std::memory_order_acquire); }

  // The memory type for buffers of kind BP_MEMORY_*, or -1 if there is none.
  int memory_type(uint32_t kind) const { return physical().memory_type(kind, buffer_types_); }
  // The create info for a buffer of `bytes` bytes.
  VkBufferCreateInfo buffer_info(uint64_t bytes) const;

  // The bytes of memory heap `heap` that buffers occupy.
  std::atomic<uint64_t>& used(uint32_t heap) { return used_[heap]; }
  // The number of live allocations. A device allows at most maxMemoryAllocationCount.
  std::atomic<uint32_t>& allocations() { return allocations_; }

  // The next queue for a stream, round robin. The first function returns a queue for kernels and
  // the copies between them, the second one for large copies.
  Queue next_queue() { return next(queues_, next_); }
  Queue next_copy_queue() { return next(copy_queues_, next_copy_); }
  // Copies between host and device of at least this many bytes use the copy queue. UINT64_MAX if
  // none does.
  uint64_t copy_queue_threshold() const { return copy_queue_threshold_; }
  kit::Status submit(const Queue& queue, const VkSubmitInfo& info);
  // Waits for all work of all queues. Work of a lost device also ends in finite time.
  void wait_idle();

  // A timeline semaphore without pending work, reused or new. Semaphores are destroyed only with
  // the device, because Mesa 22.3 still accesses a semaphore shortly after a wait for it has
  // returned.
  kit::Result<VkSemaphore> take_semaphore();
  void give_semaphore(VkSemaphore semaphore);

  // A query pool with one timestamp, reused or new.
  kit::Result<VkQueryPool> take_query();
  void give_query(VkQueryPool pool);

 private:
  LogicalDevice(std::shared_ptr<const Instance> instance, uint32_t index)
      : instance_(std::move(instance)), index_(index) {}
  kit::Status start();
  static constexpr uint32_t kMaxQueues = 8;  // maximum queues used per family
  kit::Status choose_copy_queue();
  void get_queues(uint32_t family, uint32_t count, std::vector<Queue>& queues);
  kit::Status find_buffer_types();
  static Queue next(const std::vector<Queue>& queues, std::atomic<uint32_t>& turn) {
    return queues[turn.fetch_add(1, std::memory_order_relaxed) % queues.size()];
  }

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
  std::atomic<uint32_t> next_{0}, next_copy_{0};
  std::atomic<bool> lost_{false};
  std::atomic<uint64_t> used_[VK_MAX_MEMORY_HEAPS] = {};
  std::atomic<uint32_t> allocations_{0};
  std::mutex lists_mutex_;
  std::vector<VkSemaphore> semaphores_;
  std::vector<VkQueryPool> queries_;
};

}  // namespace backplane::vulkan
