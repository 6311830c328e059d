// SPDX-License-Identifier: Apache-2.0
#include "runtime/pipelines.hpp"

#include "runtime/float_controls.hpp"

namespace backplane::vulkan {

namespace {

constexpr uint32_t kCooperativeMatrixKHR = 6022, kGroupNonUniformBallot = 64,
                   kGroupNonUniformShuffle = 65;  // SPIR-V capabilities

bool declares(std::span<const uint32_t> module, uint32_t capability) {
  constexpr std::size_t kHeaderWords = 5;
  // The first word of an OpCapability instruction, which has two words. A module begins with its
  // OpCapability instructions.
  constexpr uint32_t kOpCapability = 2 << 16 | 17;
  for (std::size_t at = kHeaderWords; at + 1 < module.size() && module[at] == kOpCapability; at += 2) {
    if (module[at + 1] == capability) return true;
  }
  return false;
}

}  // namespace

bool uses_ballots(std::span<const uint32_t> module) { return declares(module, kGroupNonUniformBallot); }
bool uses_any_subgroup_size(std::span<const uint32_t> module) {
  return declares(module, kGroupNonUniformShuffle) && !uses_ballots(module);
}
bool needs_full_subgroups(std::span<const uint32_t> module) {
  return uses_ballots(module) || declares(module, kCooperativeMatrixKHR);
}

const Shader* find_shader(std::string_view name) {
  for (std::size_t i = 0; i < kShaderCount; ++i) {
    if (name == kShaders[i].name) return &kShaders[i];
  }
  return nullptr;
}

Pipelines::~Pipelines() {
  for (auto& [key, entry] : entries_) device_.api().vkDestroyPipeline(device_.handle(), entry.pipeline, nullptr);
}

kit::Result<VkPipeline> Pipelines::get(const std::string& shader, const Constants& constants) {
  const Shader* found = find_shader(shader);
  if (found == nullptr) return kit::Status{BP_INTERNAL, kit::text("vulkan: there is no shader ", shader)};
  Entry* entry = nullptr;
  {
    std::lock_guard lock(mutex_);
    entry = &entries_[{found, constants}];
  }
  std::lock_guard lock(entry->mutex);
  if (entry->pipeline == VK_NULL_HANDLE) {
    auto made = compile(*found, constants);
    if (!made.ok()) return made;
    entry->pipeline = made.value();
  }
  return entry->pipeline;
}

kit::Result<VkPipeline> Pipelines::compile(const Shader& shader, const Constants& constants) {
  const DeviceApi& api = device_.api();
  const PhysicalDevice& physical = device_.physical();
  const std::vector<uint32_t> words = with_float_controls({shader.words, shader.word_count}, physical.float_controls);
  auto code = chained<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  code.codeSize = words.size() * sizeof(uint32_t);
  code.pCode = words.data();
  VkShaderModule module = VK_NULL_HANDLE;
  kit::Status status =
      device_.check(api.vkCreateShaderModule(device_.handle(), &code, nullptr, &module), "vkCreateShaderModule");
  if (!status.ok()) return status;

  std::array<VkSpecializationMapEntry, BACKPLANE_ID_COUNT> entries;
  for (uint32_t i = 0; i < entries.size(); ++i) entries[i] = {i, i * uint32_t{sizeof(uint32_t)}, sizeof(uint32_t)};
  const VkSpecializationInfo specialization{entries.size(), entries.data(), sizeof(constants.by_id()),
                                            constants.by_id().data()};
  auto info = chained<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  if (physical.full_subgroups && needs_full_subgroups(words))
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT;
  if (physical.varying_subgroups && uses_any_subgroup_size(words))
    info.stage.flags |= VK_PIPELINE_SHADER_STAGE_CREATE_ALLOW_VARYING_SUBGROUP_SIZE_BIT_EXT;
  auto subgroup_size = chained<VkPipelineShaderStageRequiredSubgroupSizeCreateInfoEXT>(
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO_EXT);
  subgroup_size.requiredSubgroupSize = physical.required_subgroup_size;
  if (physical.required_subgroup_size != 0 && uses_ballots(words)) info.stage.pNext = &subgroup_size;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &specialization;
  info.layout = device_.pipeline_layout();
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult result = api.vkCreateComputePipelines(device_.handle(), cache_.handle(), 1, &info, nullptr, &pipeline);
  api.vkDestroyShaderModule(device_.handle(), module, nullptr);
  if (status = device_.check(result, "vkCreateComputePipelines"); !status.ok()) return status;
  cache_.note_compiled();
  return pipeline;
}

}  // namespace backplane::vulkan
