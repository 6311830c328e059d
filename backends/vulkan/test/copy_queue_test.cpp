// SPDX-License-Identifier: Apache-2.0
// Tests the copy queue on a device that has no copy queue. Wrappers around the driver's functions
// present the queue of the first family as a second family. The wrappers also check the commands
// that are submitted to the second family.
#include <cstring>
#include <set>

#include "rig.hpp"

namespace backplane::vulkan::test {

namespace {

constexpr uint32_t kKernelFamily = 0, kCopyFamily = 1;
constexpr uint64_t kLarge = uint64_t{1} << 20,
                   kSmall = 4096;  // bytes of a copy that uses the copy queue, and of a copy that does not

PFN_vkGetDeviceProcAddr real_lookup = nullptr;
PFN_vkCreateDevice real_create_device = nullptr;
DeviceApi real;
VkQueue only_queue = VK_NULL_HANDLE;
int copy_queue_storage;
VkQueue const copy_queue = reinterpret_cast<VkQueue>(&copy_queue_storage);
std::mutex mutex;
std::set<VkCommandPool> copy_pools;
std::set<VkCommandBuffer> copy_commands;
std::atomic<int> submissions[2], copies[2];

bool is_of_copies(VkCommandBuffer commands) {
  std::lock_guard lock(mutex);
  return copy_commands.contains(commands);
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                                             const VkAllocationCallbacks* callbacks, VkDevice* out) {
  EXPECT_EQ(info->queueCreateInfoCount, 2u);
  EXPECT_EQ(info->pQueueCreateInfos[1].queueFamilyIndex, kCopyFamily);
  VkDeviceCreateInfo first = *info;
  first.queueCreateInfoCount = 1;
  return real_create_device(physical, &first, callbacks, out);
}
VKAPI_ATTR void VKAPI_CALL get_queue(VkDevice device, uint32_t family, uint32_t index, VkQueue* out) {
  if (family == kCopyFamily) {
    *out = copy_queue;
    return;
  }
  real.vkGetDeviceQueue(device, family, index, out);
  only_queue = *out;
}
VKAPI_ATTR VkResult VKAPI_CALL create_buffer(VkDevice device, const VkBufferCreateInfo* info,
                                             const VkAllocationCallbacks* callbacks, VkBuffer* out) {
  EXPECT_EQ(info->sharingMode, VK_SHARING_MODE_CONCURRENT) << "both queues use it";
  EXPECT_EQ(info->queueFamilyIndexCount, 2u);
  VkBufferCreateInfo own = *info;
  own.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  return real.vkCreateBuffer(device, &own, callbacks, out);
}
VKAPI_ATTR VkResult VKAPI_CALL create_pool(VkDevice device, const VkCommandPoolCreateInfo* info,
                                           const VkAllocationCallbacks* callbacks, VkCommandPool* out) {
  VkCommandPoolCreateInfo own = *info;
  own.queueFamilyIndex = kKernelFamily;
  const VkResult result = real.vkCreateCommandPool(device, &own, callbacks, out);
  std::lock_guard lock(mutex);
  copy_pools.erase(*out);  // the driver may reuse handles
  if (info->queueFamilyIndex == kCopyFamily) copy_pools.insert(*out);
  return result;
}
VKAPI_ATTR VkResult VKAPI_CALL allocate_commands(VkDevice device, const VkCommandBufferAllocateInfo* info,
                                                 VkCommandBuffer* out) {
  const VkResult result = real.vkAllocateCommandBuffers(device, info, out);
  std::lock_guard lock(mutex);
  copy_commands.erase(*out);
  if (copy_pools.contains(info->commandPool)) copy_commands.insert(*out);
  return result;
}
VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos, VkFence fence) {
  const bool to_copies = queue == copy_queue;
  ++submissions[to_copies];
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t c = 0; c < infos[i].commandBufferCount; ++c)
      EXPECT_EQ(is_of_copies(infos[i].pCommandBuffers[c]), to_copies) << "of the other family's pool";
    for (uint32_t w = 0; to_copies && w < infos[i].waitSemaphoreCount; ++w)
      EXPECT_EQ(infos[i].pWaitDstStageMask[w], static_cast<VkPipelineStageFlags>(VK_PIPELINE_STAGE_TRANSFER_BIT));
  }
  return real.vkQueueSubmit(to_copies ? only_queue : queue, count, infos, fence);
}
VKAPI_ATTR void VKAPI_CALL barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkPipelineStageFlags to,
                                   VkDependencyFlags flags, uint32_t memories, const VkMemoryBarrier* memory,
                                   uint32_t buffers, const VkBufferMemoryBarrier* buffer, uint32_t images,
                                   const VkImageMemoryBarrier* image) {
  if (is_of_copies(commands)) {
    EXPECT_EQ((from | to) & VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0u) << "a stage that the family does not have";
    for (uint32_t i = 0; i < memories; ++i)
      EXPECT_EQ((memory[i].srcAccessMask | memory[i].dstAccessMask) &
                    (VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT),
                0u);
  }
  real.vkCmdPipelineBarrier(commands, from, to, flags, memories, memory, buffers, buffer, images, image);
}
VKAPI_ATTR void VKAPI_CALL dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y, uint32_t z) {
  EXPECT_FALSE(is_of_copies(commands)) << "a kernel on a queue for copies";
  real.vkCmdDispatch(commands, x, y, z);
}
VKAPI_ATTR void VKAPI_CALL copy(VkCommandBuffer commands, VkBuffer from, VkBuffer to, uint32_t count,
                                const VkBufferCopy* regions) {
  ++copies[is_of_copies(commands)];
  real.vkCmdCopyBuffer(commands, from, to, count, regions);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL lookup(VkDevice device, const char* name) {
  const PFN_vkVoidFunction found = real_lookup(device, name);
#define REPLACE(slot, function)                               \
  if (std::strcmp(name, #slot) == 0) {                        \
    real.slot = reinterpret_cast<PFN_##slot>(found);          \
    return reinterpret_cast<PFN_vkVoidFunction>(&(function)); \
  }
  REPLACE(vkGetDeviceQueue, get_queue)
  REPLACE(vkCreateBuffer, create_buffer)
  REPLACE(vkCreateCommandPool, create_pool)
  REPLACE(vkAllocateCommandBuffers, allocate_commands)
  REPLACE(vkQueueSubmit, submit)
  REPLACE(vkCmdPipelineBarrier, barrier)
  REPLACE(vkCmdDispatch, dispatch)
  REPLACE(vkCmdCopyBuffer, copy)
#undef REPLACE
  return found;
}

// Fixture that presents two queue families before the first device is opened. The fixture's buffers
// hold f32 vectors of any size.
class CopyQueue : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) return;
    if (real_lookup == nullptr) {
      auto& api = const_cast<InstanceApi&>(instance->api());
      real_lookup = std::exchange(api.vkGetDeviceProcAddr, lookup);
      real_create_device = std::exchange(api.vkCreateDevice, create_device);
      auto& physical = const_cast<PhysicalDevice&>(instance->devices()[0]);
      physical.copy_family = kCopyFamily;
      physical.copy_count = 1;
    }
    ASSERT_TRUE(rig.open(instance).ok());
    submissions[0] = submissions[1] = copies[0] = copies[1] = 0;
  }
  void TearDown() override {
    for (Device::Buffer* buffer : made) rig.device->destroy(buffer);
  }
  Device::Buffer& buffer(uint32_t kind, uint64_t bytes) {
    made.push_back(need(rig.device->create_buffer({sizeof(bp_buffer_desc), kind, bytes, 0})));
    return *made.back();
  }
  // Copies `a` and `b` from the host, computes c = a + b on the device, and copies `c` back.
  kit::Status round(Device::Buffer& host, Device::Buffer& a, Device::Buffer& b, Device::Buffer& c, uint64_t bytes) {
    const auto floats = static_cast<int64_t>(bytes / sizeof(float));
    bp_tensor_desc views[3] = {rig.views[0], rig.views[1], rig.views[2]};
    for (bp_tensor_desc& view : views) view.shape[0] = floats;
    bp_op_desc desc = rig.desc;
    desc.inputs = views;
    desc.outputs = views + 2;
    const bp_operand operands[] = {whole(&a), whole(&b), whole(&c)};
    kit::Status status = rig.device->copy(*rig.stream, a, 0, host, 0, bytes);
    if (status.ok()) status = rig.device->copy(*rig.stream, b, 0, host, bytes, bytes);
    if (status.ok()) status = enqueue(*rig.device, *rig.stream, *rig.plan, desc, operands);
    if (status.ok()) status = rig.device->copy(*rig.stream, host, 2 * bytes, c, 0, bytes);
    return status;
  }
  Rig rig;
  std::vector<Device::Buffer*> made;
};

// In each round, a kernel waits for the two large copies before it, and a third copy waits for the
// kernel.
TEST_F(CopyQueue, LargeCopiesAreSubmittedThereInOrderWithKernels) {
  Device::Buffer& host = buffer(BP_MEMORY_HOST, 3 * kLarge);
  Device::Buffer &a = buffer(BP_MEMORY_DEVICE, kLarge), &b = buffer(BP_MEMORY_DEVICE, kLarge),
                 &c = buffer(BP_MEMORY_DEVICE, kLarge);
  auto* const floats = reinterpret_cast<float*>(host.memory->mapped);
  constexpr std::size_t kFloats = kLarge / sizeof(float);
  for (int repeat = 0; repeat < 20; ++repeat) {
    for (std::size_t i = 0; i < kFloats; ++i) {
      floats[i] = static_cast<float>(i % 1000 + static_cast<std::size_t>(repeat));
      floats[kFloats + i] = static_cast<float>(2 * repeat);
    }
    ASSERT_TRUE(round(host, a, b, c, kLarge).ok());
    ASSERT_TRUE(rig.wait().ok());
    for (const std::size_t i : {std::size_t{0}, std::size_t{12345}, kFloats - 1})
      ASSERT_EQ(floats[2 * kFloats + i], static_cast<float>(i % 1000) + 3.0f * static_cast<float>(repeat)) << repeat;
  }
  EXPECT_EQ(copies[1], 60);
  EXPECT_EQ(copies[0], 0);
  EXPECT_EQ(submissions[1], 40);  // each round submits its two uploads together, and then its download
  EXPECT_EQ(submissions[0], 20);
}

TEST_F(CopyQueue, SmallCopiesAndThoseOfTheDeviceStayWithKernels) {
  Device::Buffer& host = buffer(BP_MEMORY_HOST, 3 * kSmall);
  Device::Buffer &a = buffer(BP_MEMORY_DEVICE, kLarge), &b = buffer(BP_MEMORY_DEVICE, kLarge),
                 &c = buffer(BP_MEMORY_DEVICE, kLarge);
  std::memset(host.memory->mapped, 0, 3 * kSmall);
  ASSERT_TRUE(round(host, a, b, c, kSmall).ok());
  ASSERT_TRUE(rig.device->copy(*rig.stream, b, 0, c, 0, kLarge).ok());
  ASSERT_TRUE(rig.wait().ok());
  EXPECT_EQ(copies[0], 4);
  EXPECT_EQ(submissions[1], 0);
  EXPECT_EQ(submissions[0], 1);
}

// After a large copy, a small copy stays on the copy queue, because changing queues costs a
// submission.
TEST_F(CopyQueue, SmallCopiesFollowALargeOne) {
  Device::Buffer& host = buffer(BP_MEMORY_HOST, 2 * kLarge);
  Device::Buffer &a = buffer(BP_MEMORY_DEVICE, kLarge), &b = buffer(BP_MEMORY_DEVICE, kLarge);
  std::memset(host.memory->mapped, 7, kLarge);
  ASSERT_TRUE(rig.device->copy(*rig.stream, a, 0, host, 0, kLarge).ok());
  ASSERT_TRUE(rig.device->copy(*rig.stream, b, 0, a, 0, kSmall).ok());
  ASSERT_TRUE(rig.device->copy(*rig.stream, host, kLarge, b, 0, kSmall).ok());
  ASSERT_TRUE(rig.wait().ok());
  EXPECT_EQ(host.memory->mapped[kLarge + kSmall - 1], std::byte{7});
  EXPECT_EQ(copies[1], 3);
  EXPECT_EQ(submissions[1], 1);
}

// A stream that waits for an event also waits for the copies before that event.
TEST_F(CopyQueue, EventsFollowCopies) {
  Device::Buffer& host = buffer(BP_MEMORY_HOST, 3 * kLarge);
  Device::Buffer &a = buffer(BP_MEMORY_DEVICE, kLarge), &b = buffer(BP_MEMORY_DEVICE, kLarge);
  Device::Stream* other = need(rig.device->create_stream({}));
  for (int repeat = 1; repeat < 10; ++repeat) {
    std::memset(host.memory->mapped, repeat, kLarge);
    ASSERT_TRUE(rig.device->copy(*rig.stream, a, 0, host, 0, kLarge).ok());
    auto record = rig.stream->record(false);
    ASSERT_TRUE(record.ok());
    ASSERT_TRUE(other->wait_for(record.value()).ok());
    ASSERT_TRUE(rig.device->copy(*other, b, 0, a, 0, kLarge).ok());
    ASSERT_TRUE(rig.device->copy(*other, host, kLarge, b, 0, kLarge).ok());
    ASSERT_TRUE(other->wait(BP_WAIT_FOREVER).ok());
    ASSERT_EQ(host.memory->mapped[2 * kLarge - 1], static_cast<std::byte>(repeat));
  }
  rig.device->destroy(other);
}

}  // namespace

}  // namespace backplane::vulkan::test
