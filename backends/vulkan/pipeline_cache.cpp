// SPDX-License-Identifier: Apache-2.0
#include "pipeline_cache.hpp"

#include "pipelines.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace backplane::vulkan {

namespace {

// What pipelines are made of: another build with the same shaders has the same.
uint64_t shaders_digest() {
  static const uint64_t digest = [] {
    uint64_t all = 0;
    for (std::size_t i = 0; i < kShaderCount; ++i)
      all = XXH3_64bits_withSeed(kShaders[i].words, kShaders[i].word_count * sizeof(uint32_t), all);
    return all;
  }();
  return digest;
}

}  // namespace

PipelineCache::PipelineCache(LogicalDevice& device, const Log& log) : device_(device) {
  if (const auto folder = cache_folder()) {
    CacheKey key{.build = shaders_digest()};
    std::copy_n(device.physical().uuid, sizeof(key.device), key.device);
    std::copy_n(device.physical().driver_uuid, sizeof(key.driver), key.driver);
    file_.emplace(*folder, key);
    std::string objection;
    known_ = file_->load(objection);
    if (!objection.empty()) {
      log(BP_LOG_WARNING, kit::text("vulkan: the pipeline cache ", file_->path(), " is not used: ", objection,
                                    "; it is replaced when the device is closed"));
    }
  }
  handle_ = make(known_);
  if (handle_ == VK_NULL_HANDLE) handle_ = make({});
}

PipelineCache::~PipelineCache() { device_.api().vkDestroyPipelineCache(device_.handle(), handle_, nullptr); }

VkPipelineCache PipelineCache::make(std::span<const std::byte> data) {
  auto info = chained<VkPipelineCacheCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO);
  info.initialDataSize = data.size();
  info.pInitialData = data.data();
  VkPipelineCache made = VK_NULL_HANDLE;
  const VkResult result = device_.api().vkCreatePipelineCache(device_.handle(), &info, nullptr, &made);
  return device_.check(result, "vkCreatePipelineCache").ok() ? made : VK_NULL_HANDLE;
}

std::vector<std::byte> PipelineCache::data_of(VkPipelineCache cache) {
  std::size_t bytes = 0;
  const auto ask = [&](void* out) {
    const VkResult result = device_.api().vkGetPipelineCacheData(device_.handle(), cache, &bytes, out);
    // VK_INCOMPLETE: it grew between the two questions, and what fits is a cache, too.
    return result == VK_INCOMPLETE || device_.check(result, "vkGetPipelineCacheData").ok();
  };
  if (!ask(nullptr)) return {};
  std::vector<std::byte> out(bytes);
  if (!ask(out.data())) return {};
  out.resize(bytes);
  return out;
}

void PipelineCache::save(const Log& log) {
  if (!file_ || handle_ == VK_NULL_HANDLE || device_.lost()) return;
  std::lock_guard lock(mutex_);
  if (compiled_.exchange(0, std::memory_order_relaxed) == 0) return;
  std::string objection;
  const CacheFile::Turn turn(*file_);
  VkPipelineCache merged = VK_NULL_HANDLE;  // with what another process has stored
  if (std::vector<std::byte> now = file_->load(objection); !now.empty() && now != known_) {
    merged = make(now);
    // Into the new one: other threads compile with ours, which must not be written meanwhile.
    if (merged != VK_NULL_HANDLE &&
        !device_
             .check(device_.api().vkMergePipelineCaches(device_.handle(), merged, 1, &handle_), "vkMergePipelineCaches")
             .ok()) {
      device_.api().vkDestroyPipelineCache(device_.handle(), merged, nullptr);
      merged = VK_NULL_HANDLE;
    }
    known_ = std::move(now);
  }
  std::vector<std::byte> all = data_of(merged != VK_NULL_HANDLE ? merged : handle_);
  device_.api().vkDestroyPipelineCache(device_.handle(), merged, nullptr);
  if (all.empty() || all == known_) return;
  const std::string why = file_->store(all);
  if (why.empty()) {
    known_ = std::move(all);
  } else if (!std::exchange(complained_, true)) {
    log(BP_LOG_WARNING, kit::text("vulkan: compiled pipelines are not kept: ", file_->path(), ": ", why,
                                  "; make its folder writable, or set ", kCache, " to another, or to off"));
  }
}

}  // namespace backplane::vulkan
