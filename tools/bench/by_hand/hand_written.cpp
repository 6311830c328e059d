// SPDX-License-Identifier: Apache-2.0
#include "bench/by_hand/hand_written.hpp"

#include <vulkan/vulkan.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace by_hand {

namespace {

void check(VkResult result, const char* what) {
  if (result != VK_SUCCESS) throw std::runtime_error(std::string(what) + " gave " + std::to_string(result));
}

template <class T>
T made(VkStructureType type) {
  T out{};
  out.sType = type;
  return out;
}

constexpr uint32_t kBuffers = 3;

}  // namespace

struct HandWritten::State {
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  uint32_t family = 0;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  VkBuffer buffers[kBuffers] = {};
  VkDeviceMemory memory[kBuffers] = {};
  float* mapped[kBuffers] = {};
  uint32_t elements = 0;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  VkDescriptorPool descriptors = VK_NULL_HANDLE;
  VkDescriptorSet set = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkPipeline pipeline = VK_NULL_HANDLE;
  VkCommandPool pool = VK_NULL_HANDLE;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  VkFence fence = VK_NULL_HANDLE;

  ~State() {
    if (device != VK_NULL_HANDLE) {
      vkDeviceWaitIdle(device);
      vkDestroyFence(device, fence, nullptr);
      vkDestroyCommandPool(device, pool, nullptr);
      vkDestroyPipeline(device, pipeline, nullptr);
      vkDestroyPipelineLayout(device, layout, nullptr);
      vkDestroyDescriptorPool(device, descriptors, nullptr);
      vkDestroyDescriptorSetLayout(device, set_layout, nullptr);
      for (uint32_t i = 0; i < kBuffers; ++i) {
        vkDestroyBuffer(device, buffers[i], nullptr);
        vkFreeMemory(device, memory[i], nullptr);
      }
      vkDestroyDevice(device, nullptr);
    }
    if (instance != VK_NULL_HANDLE) vkDestroyInstance(instance, nullptr);
  }

  void open() {
    auto application = made<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
    application.apiVersion = VK_API_VERSION_1_2;
    auto info = made<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
    info.pApplicationInfo = &application;
    check(vkCreateInstance(&info, nullptr, &instance), "vkCreateInstance");
    uint32_t count = 1;
    const VkResult found = vkEnumeratePhysicalDevices(instance, &count, &physical);
    if (count == 0) throw std::runtime_error("there is no Vulkan device");
    if (found != VK_INCOMPLETE) check(found, "vkEnumeratePhysicalDevices");
    VkQueueFamilyProperties families[16];
    uint32_t families_count = std::size(families);
    vkGetPhysicalDeviceQueueFamilyProperties(physical, &families_count, families);
    while (family < families_count && (families[family].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) ++family;
    const float priority = 1.0f;
    auto queues = made<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
    queues.queueFamilyIndex = family;
    queues.queueCount = 1;
    queues.pQueuePriorities = &priority;
    VkPhysicalDeviceFeatures features{};
    features.shaderInt64 = VK_TRUE;
    auto device_info = made<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
    device_info.queueCreateInfoCount = 1;
    device_info.pQueueCreateInfos = &queues;
    device_info.pEnabledFeatures = &features;
    check(vkCreateDevice(physical, &device_info, nullptr, &device), "vkCreateDevice");
    vkGetDeviceQueue(device, family, 0, &queue);
  }

  void make_buffer(uint32_t index) {
    auto info = made<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
    info.size = uint64_t{elements} * sizeof(float);
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
    check(vkCreateBuffer(device, &info, nullptr, &buffers[index]), "vkCreateBuffer");
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(device, buffers[index], &needs);
    VkPhysicalDeviceMemoryProperties types;
    vkGetPhysicalDeviceMemoryProperties(physical, &types);
    constexpr VkMemoryPropertyFlags kVisible =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    int best = -1;  // index of the best memory type so far; device-local types are preferred
    for (uint32_t type = 0; type < types.memoryTypeCount; ++type) {
      const VkMemoryPropertyFlags flags = types.memoryTypes[type].propertyFlags;
      if ((needs.memoryTypeBits >> type & 1u) == 0 || (flags & kVisible) != kVisible) continue;
      if (best < 0 || (flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0) best = static_cast<int>(type);
    }
    if (best < 0) throw std::runtime_error("the device has no host-visible memory for storage buffers");
    auto allocation = made<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
    allocation.allocationSize = needs.size;
    allocation.memoryTypeIndex = static_cast<uint32_t>(best);
    check(vkAllocateMemory(device, &allocation, nullptr, &memory[index]), "vkAllocateMemory");
    check(vkBindBufferMemory(device, buffers[index], memory[index], 0), "vkBindBufferMemory");
    void* address = nullptr;
    check(vkMapMemory(device, memory[index], 0, VK_WHOLE_SIZE, 0, &address), "vkMapMemory");
    mapped[index] = static_cast<float*>(address);
  }

  void describe() {
    VkDescriptorSetLayoutBinding bindings[kBuffers];
    for (uint32_t i = 0; i < kBuffers; ++i)
      bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
    auto layout_info = made<VkDescriptorSetLayoutCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO);
    layout_info.bindingCount = kBuffers;
    layout_info.pBindings = bindings;
    check(vkCreateDescriptorSetLayout(device, &layout_info, nullptr, &set_layout), "vkCreateDescriptorSetLayout");
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, kBuffers};
    auto pool_info = made<VkDescriptorPoolCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO);
    pool_info.maxSets = 1;
    pool_info.poolSizeCount = 1;
    pool_info.pPoolSizes = &size;
    check(vkCreateDescriptorPool(device, &pool_info, nullptr, &descriptors), "vkCreateDescriptorPool");
    auto set_info = made<VkDescriptorSetAllocateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO);
    set_info.descriptorPool = descriptors;
    set_info.descriptorSetCount = 1;
    set_info.pSetLayouts = &set_layout;
    check(vkAllocateDescriptorSets(device, &set_info, &set), "vkAllocateDescriptorSets");
    VkDescriptorBufferInfo ranges[kBuffers];
    for (uint32_t i = 0; i < kBuffers; ++i) ranges[i] = {buffers[i], 0, VK_WHOLE_SIZE};
    auto write = made<VkWriteDescriptorSet>(VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET);
    write.dstSet = set;
    write.descriptorCount = kBuffers;
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = ranges;
    vkUpdateDescriptorSets(device, 1, &write, 0, nullptr);
  }

  void compile(std::span<const uint32_t> spirv) {
    const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(uint32_t)};
    auto layout_info = made<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
    layout_info.setLayoutCount = 1;
    layout_info.pSetLayouts = &set_layout;
    layout_info.pushConstantRangeCount = 1;
    layout_info.pPushConstantRanges = &range;
    check(vkCreatePipelineLayout(device, &layout_info, nullptr, &layout), "vkCreatePipelineLayout");
    auto module_info = made<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
    module_info.codeSize = spirv.size_bytes();
    module_info.pCode = spirv.data();
    VkShaderModule module = VK_NULL_HANDLE;
    check(vkCreateShaderModule(device, &module_info, nullptr, &module), "vkCreateShaderModule");
    auto info = made<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = module;
    info.stage.pName = "main";
    info.layout = layout;
    const VkResult result = vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline);
    vkDestroyShaderModule(device, module, nullptr);
    check(result, "vkCreateComputePipelines");
  }

  void record(const Program& program) {
    auto pool_info = made<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
    pool_info.queueFamilyIndex = family;
    check(vkCreateCommandPool(device, &pool_info, nullptr, &pool), "vkCreateCommandPool");
    auto info = made<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
    info.commandPool = pool;
    info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    info.commandBufferCount = 1;
    check(vkAllocateCommandBuffers(device, &info, &commands), "vkAllocateCommandBuffers");
    const auto begin = made<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
    check(vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0, nullptr);
    vkCmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(program.count), &program.count);
    auto order = made<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
    order.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
    order.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_HOST_READ_BIT;
    for (uint32_t i = 0; i < program.calls; ++i) {
      vkCmdDispatch(commands, program.groups, 1, 1);
      vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                           VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &order, 0, nullptr,
                           0, nullptr);
    }
    check(vkEndCommandBuffer(commands), "vkEndCommandBuffer");
    const auto fence_info = made<VkFenceCreateInfo>(VK_STRUCTURE_TYPE_FENCE_CREATE_INFO);
    check(vkCreateFence(device, &fence_info, nullptr, &fence), "vkCreateFence");
  }
};

HandWritten::HandWritten(const Program& program, std::span<const float> values) : state_(std::make_unique<State>()) {
  state_->elements = program.elements;
  state_->open();
  for (uint32_t i = 0; i < kBuffers; ++i) state_->make_buffer(i);
  for (uint32_t i = 0; i < 2; ++i) std::copy(values.begin(), values.end(), state_->mapped[i]);
  state_->describe();
  state_->compile(program.spirv);
  state_->record(program);
}

HandWritten::~HandWritten() = default;

void HandWritten::run() {
  auto info = made<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  info.commandBufferCount = 1;
  info.pCommandBuffers = &state_->commands;
  check(vkQueueSubmit(state_->queue, 1, &info, state_->fence), "vkQueueSubmit");
  check(vkWaitForFences(state_->device, 1, &state_->fence, VK_TRUE, UINT64_MAX), "vkWaitForFences");
  check(vkResetFences(state_->device, 1, &state_->fence), "vkResetFences");
}

std::span<const float> HandWritten::result() const { return {state_->mapped[2], state_->elements}; }

}  // namespace by_hand
