// SPDX-License-Identifier: Apache-2.0
// The compiled kernels of a device: made when a plan first needs one, by shader and specialisation constants, never by size.
#pragma once

#include <array>
#include <map>

#include "runtime/pipeline_cache.hpp"

namespace backplane::vulkan {

// A kernel's SPIR-V, embedded at build time.
struct Shader {
  const char* name;  // of the source, and of the dtype if it is compiled for each: "softmax_f32"
  const uint32_t* words;
  uint32_t word_count;
};
extern const Shader kShaders[];
extern const std::size_t kShaderCount;

// Null: there is none of that name.
const Shader* find_shader(std::string_view name);
// Of a module with cooperative matrices, or whose lanes hand each other what the others read: its subgroups must be full.
bool wants_full_subgroups(std::span<const uint32_t> module);
// Of the latter alone: how many lanes a subgroup has is asked for.
bool passes_by_lanes(std::span<const uint32_t> module);
// Of a module that passes values about and counts lanes itself: it is to be told how many it has, not the device's usual number.
bool takes_any_lanes(std::span<const uint32_t> module);

// Values of constant_id 0, 1, 2, ...; what each means is the shader's own.
using Constants = std::array<uint32_t, 10>;

class Pipelines {
 public:
  Pipelines(LogicalDevice& device, const Log& log) : device_(device), cache_(device, log) {}
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  // Those that the driver's cache knows are not compiled again, also from one process to the next.
  PipelineCache& cache() { return cache_; }

  // Compiles at the first call for the shader and constants. Any thread.
  kit::Result<VkPipeline> get(const std::string& shader, const Constants& constants);

 private:
  struct Entry {
    std::mutex mutex;  // held while it is compiled, so that others go on
    VkPipeline pipeline = VK_NULL_HANDLE;
  };
  kit::Result<VkPipeline> compile(const Shader& shader, const Constants& constants);

  LogicalDevice& device_;
  PipelineCache cache_;
  std::mutex mutex_;
  std::map<std::pair<const Shader*, Constants>, Entry> entries_;
};

}  // namespace backplane::vulkan
