// SPDX-License-Identifier: Apache-2.0
// Tests the handles of "bp.native": other code uses the plugin's objects with functions of its own loader.
#include <dlfcn.h>

#include <backplane/kit/native.hpp>

#include "rig.hpp"

namespace backplane::vulkan::test {

namespace {

// The functions that other code calls.
struct OtherCode {
#define BP_OTHER(name) PFN_##name name = nullptr
  BP_OTHER(vkGetInstanceProcAddr);
  BP_OTHER(vkGetDeviceProcAddr);
  BP_OTHER(vkGetPhysicalDeviceProperties);
  BP_OTHER(vkGetDeviceQueue);
  BP_OTHER(vkCreateCommandPool);
  BP_OTHER(vkDestroyCommandPool);
  BP_OTHER(vkAllocateCommandBuffers);
  BP_OTHER(vkBeginCommandBuffer);
  BP_OTHER(vkEndCommandBuffer);
  BP_OTHER(vkCmdCopyBuffer);
  BP_OTHER(vkQueueSubmit);
  BP_OTHER(vkQueueWaitIdle);
  BP_OTHER(vkGetSemaphoreCounterValue);
#undef BP_OTHER

  OtherCode(VkInstance instance, VkDevice device) {
    void* const library = ::dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    vkGetInstanceProcAddr = reinterpret_cast<PFN_vkGetInstanceProcAddr>(::dlsym(library, "vkGetInstanceProcAddr"));
    find(instance, "vkGetDeviceProcAddr", vkGetDeviceProcAddr);
    find(instance, "vkGetPhysicalDeviceProperties", vkGetPhysicalDeviceProperties);
    find(device, "vkGetDeviceQueue", vkGetDeviceQueue);
    find(device, "vkCreateCommandPool", vkCreateCommandPool);
    find(device, "vkDestroyCommandPool", vkDestroyCommandPool);
    find(device, "vkAllocateCommandBuffers", vkAllocateCommandBuffers);
    find(device, "vkBeginCommandBuffer", vkBeginCommandBuffer);
    find(device, "vkEndCommandBuffer", vkEndCommandBuffer);
    find(device, "vkCmdCopyBuffer", vkCmdCopyBuffer);
    find(device, "vkQueueSubmit", vkQueueSubmit);
    find(device, "vkQueueWaitIdle", vkQueueWaitIdle);
    find(device, "vkGetSemaphoreCounterValue", vkGetSemaphoreCounterValue);
  }

 private:
  template <class Function>
  void find(VkInstance instance, const char* name, Function& out) const {
    out = reinterpret_cast<Function>(vkGetInstanceProcAddr(instance, name));
    EXPECT_NE(out, nullptr) << name;
  }
  template <class Function>
  void find(VkDevice device, const char* name, Function& out) const {
    out = reinterpret_cast<Function>(vkGetDeviceProcAddr(device, name));
    EXPECT_NE(out, nullptr) << name;
  }
};

template <class Handle>
Handle object_of(const bp_native_handle& handle) {
  return reinterpret_cast<Handle>(static_cast<uintptr_t>(handle.value));
}

class VulkanNative : public OnRig {
 protected:
  bp_native_handle device_handle(uint32_t index, const char* type) {
    auto made = rig.device->device_native(index);
    EXPECT_TRUE(made.ok()) << made.status().message();
    EXPECT_EQ(kit::type_of(made.value()), type);
    return made.value();
  }
};

TEST_F(VulkanNative, TheHandlesOfTheDeviceBelongTogether) {
  const auto device = object_of<VkDevice>(device_handle(2, "vulkan.device"));
  const OtherCode vk(object_of<VkInstance>(device_handle(0, "vulkan.instance")), device);
  VkPhysicalDeviceProperties properties{};
  vk.vkGetPhysicalDeviceProperties(object_of<VkPhysicalDevice>(device_handle(1, "vulkan.physical_device")),
                                   &properties);
  EXPECT_STREQ(properties.deviceName, instance->devices()[0].properties.deviceName);
  VkQueue queue = VK_NULL_HANDLE;
  vk.vkGetDeviceQueue(device, static_cast<uint32_t>(device_handle(3, "vulkan.queue_family").value), 0, &queue);
  EXPECT_EQ(queue, object_of<VkQueue>(device_handle(4, "vulkan.queue")));
  EXPECT_EQ(rig.device->device_native(5).status().code(), BP_UNSUPPORTED);
}

// Other code waits on the device for an event of the plugin, and copies from a buffer of the plugin.
TEST_F(VulkanNative, OtherCodeReadsABufferAfterAnEvent) {
  const auto device = object_of<VkDevice>(device_handle(2, "vulkan.device"));
  const OtherCode vk(object_of<VkInstance>(device_handle(0, "vulkan.instance")), device);
  const auto queue = object_of<VkQueue>(device_handle(4, "vulkan.queue"));
  for (int64_t i = 0; i < Rig::kElements; ++i) {
    rig.data(0)[i] = static_cast<float>(i);
    rig.data(1)[i] = 1;
  }
  Device::Event* const event = need(rig.device->create_event(0));
  EXPECT_EQ(rig.device->native(*event).status().code(), BP_INVALID_ARGUMENT);
  ASSERT_TRUE(rig.enqueue().ok());
  ASSERT_TRUE(rig.device->record(*event, *rig.stream).ok());
  const bp_native_handle point = rig.device->native(*event).value();
  EXPECT_EQ(kit::type_of(point), "vulkan.timeline_semaphore");
  EXPECT_GT(point.offset, 0u);
  const bp_native_handle from = rig.device->native(*rig.buffers[2]).value();
  const bp_native_handle to = rig.device->native(*rig.buffers[1]).value();
  EXPECT_EQ(kit::type_of(from), "vulkan.buffer");
  EXPECT_EQ(from.bytes, Rig::kElements * sizeof(float));

  VkCommandPoolCreateInfo pool_info{};
  pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool_info.queueFamilyIndex = static_cast<uint32_t>(device_handle(3, "vulkan.queue_family").value);
  VkCommandPool pool = VK_NULL_HANDLE;
  ASSERT_EQ(vk.vkCreateCommandPool(device, &pool_info, nullptr, &pool), VK_SUCCESS);
  VkCommandBufferAllocateInfo buffer_info{};
  buffer_info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  buffer_info.commandPool = pool;
  buffer_info.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  ASSERT_EQ(vk.vkAllocateCommandBuffers(device, &buffer_info, &commands), VK_SUCCESS);
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  ASSERT_EQ(vk.vkBeginCommandBuffer(commands, &begin), VK_SUCCESS);
  const VkBufferCopy region{from.offset, to.offset, from.bytes};
  vk.vkCmdCopyBuffer(commands, object_of<VkBuffer>(from), object_of<VkBuffer>(to), 1, &region);
  ASSERT_EQ(vk.vkEndCommandBuffer(commands), VK_SUCCESS);
  VkTimelineSemaphoreSubmitInfo values{};
  values.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  values.waitSemaphoreValueCount = 1;
  values.pWaitSemaphoreValues = &point.offset;
  const auto semaphore = object_of<VkSemaphore>(point);
  const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
  VkSubmitInfo submit{};
  submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submit.pNext = &values;
  submit.waitSemaphoreCount = 1;
  submit.pWaitSemaphores = &semaphore;
  submit.pWaitDstStageMask = &stage;
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands;
  ASSERT_EQ(vk.vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE), VK_SUCCESS);
  ASSERT_EQ(vk.vkQueueWaitIdle(queue), VK_SUCCESS);
  uint64_t reached = 0;
  ASSERT_EQ(vk.vkGetSemaphoreCounterValue(device, semaphore, &reached), VK_SUCCESS);
  EXPECT_GE(reached, point.offset);
  for (int64_t i = 0; i < Rig::kElements; ++i) ASSERT_EQ(rig.data(1)[i], static_cast<float>(i + 1)) << i;
  vk.vkDestroyCommandPool(device, pool, nullptr);
  rig.device->destroy(event);
}

}  // namespace

}  // namespace backplane::vulkan::test
