// SPDX-License-Identifier: Apache-2.0
// Alters the features that a device reports. A device without a required feature is rejected, and
// the error names the feature. A device without an optional feature works.
#include <gmock/gmock.h>

#include "ops/operators.hpp"
#include "rig.hpp"
#include "watched_driver.hpp"

namespace backplane::vulkan::test {

namespace {

template <class T>
T* link(void* chain, VkStructureType type) {
  for (auto* at = static_cast<VkBaseOutStructure*>(chain); at != nullptr; at = at->pNext) {
    if (at->sType == type) return reinterpret_cast<T*>(at);
  }
  return nullptr;
}

class Features : public testing::Test {
 protected:
  void SetUp() override {
    // Keeps the driver's library loaded, because LeakSanitizer cannot attribute leaks of an
    // unloaded library.
    auto found = Instance::shared();
    if (!found.ok()) GTEST_SKIP() << found.status().message();
    instance = found.value();
  }
  void TearDown() override {
    watched::change_features = {};
    watched::change_properties = {};
    watched::change_pipeline = {};
    watched::change_address = {};
    EXPECT_EQ(watched::forgotten(), "");
  }
  std::shared_ptr<const Instance> instance;
  static void refused_for(const std::string& name) {
    const auto status = watched::instance().status();
    EXPECT_EQ(status.code(), BP_UNAVAILABLE) << name;
    EXPECT_THAT(status.message(), testing::HasSubstr(" lacks " + name));
  }
};

TEST_F(Features, OneThatIsNeededAndAbsentIsNamed) {
  VkBool32 VkPhysicalDeviceVulkan12Features::*const of_12[] = {
      &VkPhysicalDeviceVulkan12Features::bufferDeviceAddress, &VkPhysicalDeviceVulkan12Features::timelineSemaphore,
      &VkPhysicalDeviceVulkan12Features::scalarBlockLayout, &VkPhysicalDeviceVulkan12Features::storageBuffer8BitAccess};
  const char* const names[] = {"bufferDeviceAddress", "timelineSemaphore", "scalarBlockLayout",
                               "storageBuffer8BitAccess"};
  for (std::size_t i = 0; i < std::size(of_12); ++i) {
    watched::change_features = [&](VkPhysicalDeviceFeatures2& out) {
      auto* requested =
          link<VkPhysicalDeviceVulkan12Features>(&out, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
      if (requested != nullptr) requested->*of_12[i] = VK_FALSE;
    };
    refused_for(names[i]);
  }
  watched::change_features = [](VkPhysicalDeviceFeatures2& out) {
    auto* requested =
        link<VkPhysicalDeviceVulkan11Features>(&out, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES);
    if (requested != nullptr) requested->storageBuffer16BitAccess = VK_FALSE;
  };
  refused_for("storageBuffer16BitAccess");
  watched::change_features = [](VkPhysicalDeviceFeatures2& out) { out.features.shaderInt64 = VK_FALSE; };
  refused_for("shaderInt64");
}

TEST_F(Features, AnOldDeviceIsNamedWithItsVersion) {
  watched::change_properties = [](VkPhysicalDeviceProperties2& out) { out.properties.apiVersion = VK_API_VERSION_1_1; };
  refused_for("Vulkan 1.2 (it has 1.1)");
}

// Returns the subgroup sizes that attention's pipelines require on a device. The device has the
// subgroup size `usual` and supports sizes from `fewest` to `most`. The result contains 0 for
// pipelines that require no size.
std::set<uint32_t> required_subgroup_sizes(uint32_t usual, uint32_t fewest, uint32_t most,
                                           VkShaderStageFlags stages = VK_SHADER_STAGE_COMPUTE_BIT) {
  watched::change_properties = [=](VkPhysicalDeviceProperties2& out) {
    if (auto* groups =
            link<VkPhysicalDeviceSubgroupProperties>(&out, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES))
      groups->subgroupSize = usual;
    if (auto* sizes = link<VkPhysicalDeviceSubgroupSizeControlPropertiesEXT>(
            &out, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES_EXT)) {
      sizes->minSubgroupSize = fewest;
      sizes->maxSubgroupSize = most;
      sizes->requiredSubgroupSizeStages = stages;
    }
  };
  std::set<uint32_t> requested;
  watched::change_pipeline = [&](VkComputePipelineCreateInfo& info) {
    const auto* subgroup_size = link<VkPipelineShaderStageRequiredSubgroupSizeCreateInfoEXT>(
        const_cast<void*>(info.stage.pNext),
        VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO_EXT);
    const auto* constants = static_cast<const uint32_t*>(info.stage.pSpecializationInfo->pData);
    if ((info.stage.flags & VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT) == 0)
      return;  // the kernel that combines splits requires no size
    requested.insert(subgroup_size == nullptr ? 0 : subgroup_size->requiredSubgroupSize);
    EXPECT_EQ(
        constants[kIdSubgroupSize],
        subgroup_size == nullptr ? usual : subgroup_size->requiredSubgroupSize);  // the size that the kernel assumes
    info.stage.pNext = nullptr;  // the driver chooses the subgroup size
  };
  auto device = LogicalDevice::create(watched::instance().value(), 0);
  EXPECT_TRUE(device.ok()) << device.status().message();
  Operators operators;
  add_attention(operators, device.value()->physical());
  const Operator& attention = *operators.find(BP_OP_ATTENTION, {BP_F32, BP_F32})->kernel;
  Pipelines pipelines(*device.value(), [](int32_t, const std::string&) {});
  for (const Kernel& kernel : attention.kernels({}, false)) {
    if (kernel.shader.empty()) continue;
    EXPECT_TRUE(pipelines.get(kernel.shader, kernel.constants).ok()) << kernel.shader;
  }
  return requested;
}

TEST_F(Features, SubgroupSizesFitTheRegistersOfKernels) {
  if (!instance->devices()[0].full_subgroups) GTEST_SKIP() << "the device has no full subgroups";
  EXPECT_THAT(required_subgroup_sizes(64, 32, 64), testing::ElementsAre(32));
  EXPECT_THAT(required_subgroup_sizes(64, 64, 64), testing::ElementsAre(0));
  EXPECT_THAT(required_subgroup_sizes(64, 32, 64, VK_SHADER_STAGE_VERTEX_BIT), testing::ElementsAre(0));
  EXPECT_THAT(required_subgroup_sizes(128, 64, 128), testing::ElementsAre(64));
  EXPECT_THAT(required_subgroup_sizes(32, 8, 32), testing::ElementsAre(16));
  EXPECT_THAT(required_subgroup_sizes(32, 32, 32), testing::ElementsAre(0));
}

TEST_F(Features, WithoutSubgroupsAndFloatControlsItWorks) {
  watched::change_properties = [](VkPhysicalDeviceProperties2& out) {
    if (auto* groups =
            link<VkPhysicalDeviceSubgroupProperties>(&out, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES))
      groups->supportedStages = 0;
    if (auto* floats = link<VkPhysicalDeviceFloatControlsProperties>(
            &out, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES)) {
      floats->shaderDenormPreserveFloat32 = floats->shaderRoundingModeRTEFloat32 = VK_FALSE;
      floats->shaderSignedZeroInfNanPreserveFloat32 = VK_FALSE;
    }
  };
  auto found = watched::instance();
  ASSERT_TRUE(found.ok()) << found.status().message();
  const PhysicalDevice& device = found.value()->devices()[0];
  EXPECT_EQ(device.subgroup_size, 0u);
  EXPECT_FALSE(device.has_shuffle || device.float_controls.round_to_even_f32 || device.float_controls.preserve_nan_f32);
  EXPECT_FALSE(device.float_controls.preserve_subnormals_f32);
  Rig rig;
  ASSERT_TRUE(rig.open(found.value()).ok());
  rig.data(0)[Rig::kElements - 1] = 1.0f;
  rig.data(1)[Rig::kElements - 1] = 2.0f;
  EXPECT_TRUE(rig.enqueue().ok());
  EXPECT_TRUE(rig.wait().ok());
  EXPECT_EQ(rig.data(2)[Rig::kElements - 1], 3.0f);
}

TEST_F(Features, AllocationsAreCountedAgainstTheDevicesLimit) {
  constexpr uint32_t kMax = 12;
  watched::change_properties = [](VkPhysicalDeviceProperties2& out) {
    out.properties.limits.maxMemoryAllocationCount = kMax;
  };
  auto device = LogicalDevice::create(watched::instance().value(), 0);
  ASSERT_TRUE(device.ok()) << device.status().message();
  Memory memory(*device.value());
  const bp_buffer_desc desc = {sizeof(bp_buffer_desc), BP_MEMORY_DEVICE, Memory::kMaxRoundedBytes + 1,
                               Memory::kAlignment};
  std::vector<Buffer*> buffers;
  for (uint32_t i = 0; i < kMax; ++i) buffers.push_back(need(memory.create(desc)));
  const kit::Status status = memory.create(desc).status();
  EXPECT_EQ(status.code(), BP_OUT_OF_MEMORY);
  EXPECT_THAT(status.message(), testing::HasSubstr("12 allocations of memory are in use"));
  memory.destroy(buffers.back());
  buffers.back() = need(memory.create(desc));
  for (Buffer* buffer : buffers) memory.destroy(buffer);
}

TEST_F(Features, MemoryThatBeginsElsewhereIsAlignedInside) {
  watched::change_address = [](VkDeviceAddress address) { return address + 64; };
  auto device = LogicalDevice::create(watched::instance().value(), 0);
  ASSERT_TRUE(device.ok()) << device.status().message();
  Memory memory(*device.value());
  constexpr uint64_t kBytes = Memory::kMaxRoundedBytes + 1000;
  for (const uint64_t alignment : {Memory::kAlignment, uint64_t{4096}}) {
    Buffer* const buffer = need(memory.create({sizeof(bp_buffer_desc), BP_MEMORY_HOST, kBytes, alignment}));
    EXPECT_EQ(buffer->address % alignment, 0u);
    EXPECT_LE(buffer->offset + kBytes, buffer->allocated);
    EXPECT_NE(buffer->offset, 0u);
    memory.destroy(buffer);
  }
  // Slots of a block that begins elsewhere are aligned, too.
  Buffer* const slots[] = {need(memory.create({sizeof(bp_buffer_desc), BP_MEMORY_HOST, 1000, Memory::kAlignment})),
                           need(memory.create({sizeof(bp_buffer_desc), BP_MEMORY_HOST, 1000, Memory::kAlignment}))};
  for (const Buffer* slot : slots) EXPECT_EQ(slot->address % Memory::kAlignment, 0u);
  EXPECT_EQ(slots[1]->address - slots[0]->address, 1024u);
  EXPECT_EQ(slots[1]->mapped - slots[0]->mapped, 1024);
  EXPECT_EQ(slots[1]->offset - slots[0]->offset, 1024u);
  for (Buffer* slot : slots) memory.destroy(slot);
}

// Fixture for tests of blocks. `memory` belongs to a device with a limit of kMax allocations.
class SmallBuffers : public Features {
 protected:
  static constexpr uint32_t kMax = 12;
  void SetUp() override {
    Features::SetUp();
    if (IsSkipped()) return;
    watched::change_properties = [](VkPhysicalDeviceProperties2& out) {
      out.properties.limits.maxMemoryAllocationCount = kMax;
    };
    device = std::move(LogicalDevice::create(watched::instance().value(), 0).value());
    memory.emplace(*device);
  }
  void TearDown() override {
    memory.reset();
    device.reset();
    EXPECT_EQ(watched::forgotten(), "");
    Features::TearDown();
  }
  static bp_buffer_desc of(uint64_t bytes, uint32_t kind = BP_MEMORY_HOST) {
    return {sizeof(bp_buffer_desc), kind, bytes, Memory::kAlignment};
  }
  uint32_t allocations() const { return device->allocations().load(); }

  std::unique_ptr<LogicalDevice> device;
  std::optional<Memory> memory;
};

TEST_F(SmallBuffers, ShareAnAllocationAndNoBytes) {
  std::vector<Buffer*> buffers;
  for (int i = 0; i < 65; ++i) {
    buffers.push_back(need(memory->create(of(1000))));
    std::memset(buffers.back()->mapped, i, 1000);
    EXPECT_EQ(allocations(), i < 64 ? 1u : 2u) << i;
  }
  for (int i = 0; i < 65; ++i) {
    const std::byte* const mapped = buffers[static_cast<std::size_t>(i)]->mapped;
    EXPECT_TRUE(std::all_of(mapped, mapped + 1000, [&](std::byte each) { return each == std::byte(i); })) << i;
  }
  // A slot that becomes free is used again, before another block.
  Buffer* const freed = buffers[7];
  const uint64_t address = freed->address;
  memory->destroy(freed);
  buffers[7] = need(memory->create(of(1024)));
  EXPECT_EQ(buffers[7]->address, address);
  for (Buffer* buffer : buffers) memory->destroy(buffer);
  EXPECT_EQ(allocations(), 1u) << "one block without buffers stays";
  EXPECT_TRUE(memory->destroy_empty_blocks());
  EXPECT_FALSE(memory->destroy_empty_blocks());
  EXPECT_EQ(allocations(), 0u);
}

TEST_F(SmallBuffers, AreCountedWithTheirOwnSize) {
  const uint64_t before = device->used(0);
  Buffer* const buffer = need(memory->create(of(3000)));
  EXPECT_EQ(device->used(0) - before, 4096u);
  memory->destroy(buffer);
  EXPECT_EQ(device->used(0), before);
}

TEST_F(SmallBuffers, AreSlotsUpToASize) {
  constexpr uint64_t kRounded = Memory::kMaxRoundedBytes, kSlot = Memory::kMaxSlotBytes;
  for (const auto& [bytes, is_slot] :
       {std::pair{uint64_t{1}, true}, {kRounded, true}, {kRounded + 1, false}, {kSlot, true}, {2 * kSlot, false}}) {
    Buffer* const buffer = need(memory->create(of(bytes)));
    EXPECT_EQ(buffer->block != nullptr, is_slot) << bytes;
    memory->destroy(buffer);
  }
  bp_buffer_desc desc = of(4096);
  desc.alignment = 4096;
  Buffer* const aligned = need(memory->create(desc));
  EXPECT_EQ(aligned->block, nullptr) << "slots have the default alignment only";
  memory->destroy(aligned);
}

TEST_F(SmallBuffers, GiveEmptyBlocksUpBeforeMemoryIsExhausted) {
  for (const uint64_t bytes : {256u, 512u, 1024u}) memory->destroy(need(memory->create(of(bytes))));
  ASSERT_EQ(allocations(), 3u);
  std::vector<Buffer*> buffers;
  for (uint32_t i = 0; i < kMax; ++i) buffers.push_back(need(memory->create(of(Memory::kMaxRoundedBytes + 1))));
  EXPECT_EQ(memory->create(of(4096)).status().code(), BP_OUT_OF_MEMORY);
  for (Buffer* buffer : buffers) memory->destroy(buffer);
}

}  // namespace

}  // namespace backplane::vulkan::test
