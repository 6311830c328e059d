// SPDX-License-Identifier: Apache-2.0
// Tests the choice of queues and memory types from the properties that drivers list. The devices
// need not be available.
#include "runtime/physical_device.hpp"

#include <gtest/gtest.h>

namespace backplane::vulkan::test {

namespace {

constexpr VkQueueFlags kCopies = VK_QUEUE_TRANSFER_BIT | VK_QUEUE_SPARSE_BINDING_BIT;
constexpr VkQueueFlags kComputes = VK_QUEUE_COMPUTE_BIT | kCopies;
constexpr VkQueueFlags kAll = VK_QUEUE_GRAPHICS_BIT | kComputes;

PhysicalDevice with_queues(const std::vector<VkQueueFamilyProperties>& families) {
  PhysicalDevice device;
  device.properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  device.choose_queues(families);
  return device;
}

TEST(ChooseQueues, KernelsTakeAFamilyWithoutGraphicsAndCopiesOneOfTheirOwn) {
  const PhysicalDevice device = with_queues({{kAll, 1, 64, {}}, {kCopies, 2, 64, {}}, {kComputes, 4, 36, {}}});
  EXPECT_EQ(device.queue_family, 2u);
  EXPECT_EQ(device.queue_count, 4u);
  EXPECT_EQ(device.timestamp_bits, 36u);
  EXPECT_EQ(device.copy_family, 1u);
  EXPECT_EQ(device.copy_count, 2u);
}

TEST(ChooseQueues, AClockCountsForMore) {
  const PhysicalDevice device = with_queues({{kAll, 1, 64, {}}, {kComputes, 4, 0, {}}});
  EXPECT_EQ(device.queue_family, 0u);
  EXPECT_EQ(device.timestamp_bits, 64u);
}

TEST(ChooseQueues, VideoIsNotForCopies) {
  const PhysicalDevice device = with_queues({{kAll, 16, 64, {}}, {kCopies | VK_QUEUE_VIDEO_DECODE_BIT_KHR, 1, 64, {}}});
  EXPECT_EQ(device.copy_count, 0u);
}

TEST(ChooseQueues, AFamilyWithoutComputeIsNotChosen) { EXPECT_EQ(with_queues({{kCopies, 1, 64, {}}}).queue_count, 0u); }

constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                                kMapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                                kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

PhysicalDevice with_memory(VkPhysicalDeviceType type, const std::vector<VkMemoryPropertyFlags>& types) {
  PhysicalDevice device;
  device.properties.deviceType = type;
  for (const VkMemoryPropertyFlags flags : types)
    device.memory.memoryTypes[device.memory.memoryTypeCount++].propertyFlags = flags;
  return device;
}

TEST(MemoryType, OfADiscreteDevice) {
  const PhysicalDevice device = with_memory(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
                                            {0, kLocal, kMapped, kMapped | kCached, kLocal | kMapped,
                                             kLocal | kMapped | VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD});
  EXPECT_EQ(device.memory_type(BP_MEMORY_DEVICE), 1);
  EXPECT_EQ(device.memory_type(BP_MEMORY_HOST), 3);
  EXPECT_EQ(device.memory_type(BP_MEMORY_SHARED), 4);
}

TEST(MemoryType, SharedIsCachedWhereMemoryIsUnified) {
  const PhysicalDevice device =
      with_memory(VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, {kLocal, kLocal | kMapped, kLocal | kMapped | kCached});
  EXPECT_EQ(device.memory_type(BP_MEMORY_SHARED), 2);
  EXPECT_EQ(device.memory_type(BP_MEMORY_HOST), 2);
}

TEST(MemoryType, OnlyThoseThatBuffersMayHave) {
  const PhysicalDevice device =
      with_memory(VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, {kLocal, kLocal, kLocal | kMapped, kMapped | kCached});
  EXPECT_EQ(device.memory_type(BP_MEMORY_DEVICE, 0b1110), 1);
  EXPECT_EQ(device.memory_type(BP_MEMORY_SHARED, 0b1011), -1);
  const PhysicalDevice without_coherence =
      with_memory(VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, {kLocal | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | kCached});
  EXPECT_EQ(without_coherence.memory_type(BP_MEMORY_HOST), -1);
}

}  // namespace

}  // namespace backplane::vulkan::test
