// SPDX-License-Identifier: Apache-2.0
// The compiled kernels of a device. A kernel is compiled when a plan first needs it. A kernel
// depends on its shader and specialisation constants, but not on sizes.
#pragma once

#include <array>
#include <map>

#include "runtime/pipeline_cache.hpp"
#include "shaders/specialization.h"

namespace backplane::vulkan {

// The SPIR-V of a kernel, which the build embeds.
struct Shader {
  const char* name;  // name and type from the table in shaders/meson.build, as in "softmax_f32"
  const uint32_t* words;
  uint32_t word_count;
};
extern const Shader kShaders[];
extern const std::size_t kShaderCount;

// Returns null if there is no shader with this name.
const Shader* find_shader(std::string_view name);
// Returns whether a module uses cooperative matrices or ballots and so needs full subgroups.
bool needs_full_subgroups(std::span<const uint32_t> module);
// Returns whether a module uses ballots. If so, pipelines of the module request
// PhysicalDevice::required_subgroup_size.
bool uses_ballots(std::span<const uint32_t> module);
// Returns whether a module uses shuffles and works with any subgroup size. Such a module must see
// its actual subgroup size, which may differ from the device's default size.
bool uses_any_subgroup_size(std::span<const uint32_t> module);

// Ids of the specialisation constants. shaders/specialization.h explains the constants.
enum ConstantId : uint32_t {
  kIdLayout = BACKPLANE_ID_LAYOUT,
  kIdOp = BACKPLANE_ID_OP,
  kIdVariant = BACKPLANE_ID_VARIANT,
  kIdMode = BACKPLANE_ID_MODE,
  kIdBSource = BACKPLANE_ID_B_SOURCE,
  kIdEpilogue = BACKPLANE_ID_EPILOGUE,
  kIdOutDtype = BACKPLANE_ID_OUT_DTYPE,
  kIdAlgorithm = BACKPLANE_ID_ALGORITHM,
  kIdSubgroupSize = BACKPLANE_ID_SUBGROUP_SIZE,
  kIdIgnoreIndex = BACKPLANE_ID_IGNORE_INDEX,
  kIdVec4Tile = BACKPLANE_ID_VEC4_TILE,
  kIdGroupSize = BACKPLANE_ID_GROUP_SIZE,
  kIdVec4s = BACKPLANE_ID_VEC4S,
  kIdGroupRows = BACKPLANE_ID_GROUP_ROWS,
  kIdGemmRows = BACKPLANE_ID_GEMM_ROWS,
  kIdMatrixM = BACKPLANE_ID_MATRIX_M,
  kIdMatrixN = BACKPLANE_ID_MATRIX_N,
  kIdMatrixK = BACKPLANE_ID_MATRIX_K,
  kIdMatrixSubgroupSize = BACKPLANE_ID_MATRIX_SUBGROUP_SIZE,
  kIdSubgroupsM = BACKPLANE_ID_SUBGROUPS_M,
  kIdGroupTile = BACKPLANE_ID_GROUP_TILE,
  kIdGroupTileN = BACKPLANE_ID_GROUP_TILE_N,
};

constexpr uint32_t layout_of(bool dense) { return dense ? BACKPLANE_LAYOUT_DENSE : BACKPLANE_LAYOUT_STRIDED; }

// The values of a pipeline's specialisation constants. A constant that is not set is 0.
class Constants {
 public:
  struct Value {
    ConstantId id;
    uint32_t value;
  };
  Constants() = default;
  Constants(std::initializer_list<Value> values) {
    for (const Value& each : values) set(each.id, each.value);
  }
  void set(ConstantId id, uint32_t value) { by_id_[id] = value; }
  const std::array<uint32_t, BACKPLANE_ID_COUNT>& by_id() const { return by_id_; }
  auto operator<=>(const Constants&) const = default;

 private:
  std::array<uint32_t, BACKPLANE_ID_COUNT> by_id_{};
};

class Pipelines {
 public:
  Pipelines(LogicalDevice& device, const Log& log) : device_(device), cache_(device, log) {}
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  // The driver's pipeline cache. The cache file lets other processes skip the compilation of the
  // same pipelines.
  PipelineCache& cache() { return cache_; }

  // Returns the pipeline of a shader with these constants. The first call compiles the pipeline.
  // Any thread may call get().
  kit::Result<VkPipeline> get(const std::string& shader, const Constants& constants);

 private:
  struct Entry {
    std::mutex mutex;  // one mutex per pipeline, held during compilation
    VkPipeline pipeline = VK_NULL_HANDLE;
  };
  kit::Result<VkPipeline> compile(const Shader& shader, const Constants& constants);

  LogicalDevice& device_;
  PipelineCache cache_;
  std::mutex mutex_;
  std::map<std::pair<const Shader*, Constants>, Entry> entries_;
};

}  // namespace backplane::vulkan
