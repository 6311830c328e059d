// SPDX-License-Identifier: Apache-2.0
#include "runtime/pipeline_cache.hpp"

#include "runtime/pipelines.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace backplane::vulkan {

namespace {

// Returns a digest of all shaders, so that builds with equal shaders can use the same cache.
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

CacheKey PipelineCache::key_of(const PhysicalDevice& device) {
  CacheKey key{.build = shaders_digest()};
  std::copy_n(device.uuid, sizeof(key.device), key.device);
  std::copy_n(device.driver_uuid, sizeof(key.driver), key.driver);
  return key;
}

PipelineCache::PipelineCache(LogicalDevice& device, const Log& log) : device_(device) {
  if (const auto folder = cache::cache_folder(kCacheSetting, "vulkan")) {
    file_.emplace(*folder, key_of(device.physical()));
    std::string objection;
    known_ = file_->load(objection);
    if (!objection.empty()) {
      log(BP_LOG_WARNING, kit::text("the pipeline cache ", file_->path(), " is not used: ", objection,
                                    "; it is replaced when the device is closed"));
    }
  }
  auto made = make(known_);
  if (!made.ok() && !known_.empty()) made = make({});
  if (made.ok()) {
    handle_ = made.value();
  } else {
    log(BP_LOG_WARNING, "compiled pipelines are not kept: " + made.status().message());
  }
}

PipelineCache::~PipelineCache() { device_.api().vkDestroyPipelineCache(device_.handle(), handle_, nullptr); }

kit::Result<VkPipelineCache> PipelineCache::make(std::span<const std::byte> data) {
  auto info = chained<VkPipelineCacheCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO);
  info.initialDataSize = data.size();
  info.pInitialData = data.data();
  VkPipelineCache made = VK_NULL_HANDLE;
  kit::Status status = device_.check(device_.api().vkCreatePipelineCache(device_.handle(), &info, nullptr, &made),
                                     "vkCreatePipelineCache");
  if (!status.ok()) return status;
  return made;
}

kit::Result<VkPipelineCache> PipelineCache::merged(std::vector<std::byte> stored) {
  auto made = make(stored);
  if (!made.ok()) return made;
  known_ = std::move(stored);
  // Merges into the new cache instead of `handle_`, because other threads may compile with
  // `handle_` at the same time.
  kit::Status status = device_.check(device_.api().vkMergePipelineCaches(device_.handle(), made.value(), 1, &handle_),
                                     "vkMergePipelineCaches");
  if (status.ok()) return made;
  device_.api().vkDestroyPipelineCache(device_.handle(), made.value(), nullptr);
  return status;
}

kit::Result<std::vector<std::byte>> PipelineCache::data_of(VkPipelineCache cache) {
  std::size_t bytes = 0;
  const auto get_data = [&](void* out) {
    const VkResult result = device_.api().vkGetPipelineCacheData(device_.handle(), cache, &bytes, out);
    // VK_INCOMPLETE means that the cache grew between the two calls. The data that fits into the
    // buffer is also valid.
    return result == VK_INCOMPLETE ? kit::Status() : device_.check(result, "vkGetPipelineCacheData");
  };
  if (kit::Status status = get_data(nullptr); !status.ok()) return status;
  std::vector<std::byte> out(bytes);
  if (kit::Status status = get_data(out.data()); !status.ok()) return status;
  out.resize(bytes);
  return out;
}

std::string PipelineCache::store() {
  std::string objection;
  const CacheFile::Lock lock(*file_);
  VkPipelineCache all = handle_;
  if (std::vector<std::byte> stored = file_->load(objection); !stored.empty() && stored != known_) {
    auto both = merged(std::move(stored));
    if (!both.ok()) return both.status().message();
    all = both.value();
  }
  auto data = data_of(all);
  if (all != handle_) device_.api().vkDestroyPipelineCache(device_.handle(), all, nullptr);
  if (!data.ok()) return data.status().message();
  if (data.value().empty() || data.value() == known_) return {};
  std::string why = file_->store(data.value());
  if (why.empty()) {
    known_ = std::move(data.value());
    return why;
  }
  return kit::text(file_->path(), ": ", why, "; make its folder writable, or set ", kCacheSetting,
                   " to another folder, or to off");
}

void PipelineCache::save(const Log& log) {
  if (!file_ || handle_ == VK_NULL_HANDLE || device_.lost()) return;
  std::lock_guard lock(mutex_);
  if (compiled_.exchange(0, std::memory_order_relaxed) == 0) return;
  const std::string why = store();
  if (!why.empty() && !std::exchange(complained_, true)) log(BP_LOG_WARNING, "compiled pipelines are not kept: " + why);
}

}  // namespace backplane::vulkan
