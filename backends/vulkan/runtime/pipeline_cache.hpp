// SPDX-License-Identifier: Apache-2.0
// The driver's cache of compiled pipelines, kept from process to process in a file.
#pragma once

#include <functional>

#include "runtime/cache_file.hpp"
#include "runtime/logical_device.hpp"

namespace backplane::vulkan {

// Takes a line for the user; level is BP_LOG_*.
using Log = std::function<void(int32_t level, const std::string& line)>;

class PipelineCache {
 public:
  // With what the file of this device, driver and build holds. What is wrong with it is logged, and nothing fails by it.
  PipelineCache(LogicalDevice& device, const Log& log);
  // What the file of a device's pipelines belongs to.
  static CacheKey key_of(const PhysicalDevice& device);
  ~PipelineCache();
  PipelineCache(const PipelineCache&) = delete;
  PipelineCache& operator=(const PipelineCache&) = delete;

  VkPipelineCache handle() const { return handle_; }  // may be null
  void note_compiled() { compiled_.fetch_add(1, std::memory_order_relaxed); }

  // Writes the file, merged with what another process wrote meanwhile, if pipelines were compiled since the last time and the
  // driver's data is another. What goes wrong is logged, once. Any thread.
  void save(const Log& log);

 private:
  // A cache of the driver's with `data`.
  kit::Result<VkPipelineCache> make(std::span<const std::byte> data);
  // The driver's cache, with what another process has stored in the file.
  kit::Result<VkPipelineCache> merged(std::vector<std::byte> stored);
  kit::Result<std::vector<std::byte>> data_of(VkPipelineCache cache);
  // Empty, or why the file is not written.
  std::string store();

  LogicalDevice& device_;
  std::optional<CacheFile> file_;
  VkPipelineCache handle_ = VK_NULL_HANDLE;
  std::atomic<uint32_t> compiled_{0};  // since it was saved
  std::mutex mutex_;                   // of saving
  std::vector<std::byte> known_;       // what the file holds
  bool complained_ = false;
};

}  // namespace backplane::vulkan
