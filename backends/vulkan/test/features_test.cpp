// SPDX-License-Identifier: Apache-2.0
// What a device says of itself, changed on its way: one that lacks what kernels need is refused by name, one that lacks what they can
// do without works.
#include <gmock/gmock.h>

#include "rig.hpp"
#include "watched_driver.hpp"

namespace {

using namespace backplane::vulkan;

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
    // Kept, and the driver's library with it: of one that was unloaded nothing says whose leaks are.
    auto found = Instance::shared();
    if (!found.ok()) GTEST_SKIP() << found.status().message();
  }
  void TearDown() override {
    watched::change_features = {};
    watched::change_properties = {};
    EXPECT_EQ(watched::forgotten(), "");
  }
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
      auto* asked = link<VkPhysicalDeviceVulkan12Features>(&out, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
      if (asked != nullptr) asked->*of_12[i] = VK_FALSE;
    };
    refused_for(names[i]);
  }
  watched::change_features = [](VkPhysicalDeviceFeatures2& out) {
    auto* asked = link<VkPhysicalDeviceVulkan11Features>(&out, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES);
    if (asked != nullptr) asked->storageBuffer16BitAccess = VK_FALSE;
  };
  refused_for("storageBuffer16BitAccess");
  watched::change_features = [](VkPhysicalDeviceFeatures2& out) { out.features.shaderInt64 = VK_FALSE; };
  refused_for("shaderInt64");
}

TEST_F(Features, AnOldDeviceIsNamedWithItsVersion) {
  watched::change_properties = [](VkPhysicalDeviceProperties2& out) { out.properties.apiVersion = VK_API_VERSION_1_1; };
  refused_for("Vulkan 1.2 (it speaks 1.1)");
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
  EXPECT_EQ(device.lanes, 0u);
  EXPECT_FALSE(device.shuffles || device.float_controls.round_to_even_f32 || device.float_controls.preserve_nan_f32);
  EXPECT_FALSE(device.float_controls.preserve_subnormals_f32);
  Rig rig;
  ASSERT_TRUE(rig.open(found.value()).ok());
  rig.data(0)[Rig::kElements - 1] = 1.0f;
  rig.data(1)[Rig::kElements - 1] = 2.0f;
  EXPECT_TRUE(rig.enqueue().ok());
  EXPECT_TRUE(rig.wait().ok());
  EXPECT_EQ(rig.data(2)[Rig::kElements - 1], 3.0f);
}

}  // namespace
