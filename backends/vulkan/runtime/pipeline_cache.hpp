// SPDX-License-Identifier: Apache-2.0
// The driver's pipeline cache. A file preserves the cache for later processes.
#pragma once

#include <functional>

#include "cache_file.hpp"
#include "runtime/logical_device.hpp"

namespace backplane::vulkan {

using cache::CacheFile;
using cache::CacheKey;

// Environment variable. Its value is the folder of the cache, or `off` to disable the cache.
inline constexpr const char* kCacheSetting = "BACKPLANE_VULKAN_CACHE";

// Logs a line for the user. `level` is one of BP_LOG_*.
using Log = std::function<void(int32_t level, const std::string& line)>;

class PipelineCache {
 public:
  // Loads the cache file for this device, driver and set of shaders. Failures are logged and are
  // not fatal.
  PipelineCache(LogicalDevice& device, const Log& log);
  static CacheKey key_of(const PhysicalDevice& device);
  ~PipelineCache();
  PipelineCache(const PipelineCache&) = delete;
  PipelineCache& operator=(const PipelineCache&) = delete;

  VkPipelineCache handle() const { return handle_; }  // null if the driver could not create a cache
  void note_compiled() { compiled_.fetch_add(1, std::memory_order_relaxed); }

  // Writes the file if pipelines were compiled since the last call and the driver's data changed. The new file also
  // contains the data that another process has written since this process last read or wrote the file. Logs only the
  // first failure of this PipelineCache. Any thread may call save().
  void save(const Log& log);

 private:
  // Creates a VkPipelineCache with the initial contents `data`.
  kit::Result<VkPipelineCache> make(std::span<const std::byte> data);
  // Creates a VkPipelineCache that merges `handle_` with `stored`, the data of another process.
  kit::Result<VkPipelineCache> merged(std::vector<std::byte> stored);
  kit::Result<std::vector<std::byte>> data_of(VkPipelineCache cache);
  // Returns the reason why the file was not written, or an empty string on success.
  std::string store();

  LogicalDevice& device_;
  std::optional<CacheFile> file_;
  VkPipelineCache handle_ = VK_NULL_HANDLE;
  std::atomic<uint32_t> compiled_{0};  // number of pipelines compiled since the last save
  std::mutex mutex_;                   // held during save()
  std::vector<std::byte> known_;       // data of the file when it was last read or written
  bool complained_ = false;
};

}  // namespace backplane::vulkan
