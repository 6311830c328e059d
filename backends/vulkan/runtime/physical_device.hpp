// SPDX-License-Identifier: Apache-2.0
// What a physical device is and can do, read once.
#pragma once

#include "runtime/cooperative.hpp"
#include "runtime/float_controls.hpp"

namespace backplane::vulkan {

inline constexpr const char* kPortabilitySubset =
    "VK_KHR_portability_subset";  // in the headers of beta extensions only

// What all buffers are made for.
inline constexpr VkBufferUsageFlags kBufferUsage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                                   VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                                                   VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;

// Memory that needs what is not asked for, or is not memory for buffers.
inline constexpr VkMemoryPropertyFlags kUnusableMemory =
    VK_MEMORY_PROPERTY_PROTECTED_BIT | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT |
    VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD;

// Environment: with `off` rows are joined in shared memory though subgroups could pass values about.
inline constexpr const char* kSubgroupsSetting = "BACKPLANE_VULKAN_SUBGROUPS";
// Environment: `cpu` or `gpu`, the way of the one or the other through rows, whatever the device is.
inline constexpr const char* kReductionsSetting = "BACKPLANE_VULKAN_ROWS";

struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties{};
  VkPhysicalDeviceMemoryProperties memory{};
  uint8_t uuid[16] = {};
  uint8_t driver_uuid[16] = {};
  std::string driver;                   // name and version
  std::string missing;                  // why it cannot be used; empty: it can
  uint32_t queue_family = 0;            // with compute
  uint32_t queue_count = 0;             // of the family
  uint32_t copy_family = 0;             // that copies and does nothing else
  uint32_t copy_count = 0;              // its queues; 0: there is no such family
  uint64_t max_allocation = 0;          // bytes of one allocation and one buffer
  bool portability = false;             // not all of Vulkan: what is there must be asked for by name
  uint64_t import_alignment = 0;        // of host memory that can be imported; 0: none can
  uint32_t timestamp_bits = 0;          // of the queue family's clock; 0: it has none
  FloatControls float_controls;         // that can be asked for
  uint32_t subgroup_size = 0;           // of a subgroup, where compute shaders have ballots and broadcasts; else 0
  uint32_t required_subgroup_size = 0;  // that pipelines which pass values so ask for; 0: they take the device's own
  CooperativeMatrices matrices;
  bool has_dot = false;            // VK_KHR_shader_integer_dot_product is there
  bool fast_dot_i8 = false;        // and of four packed signed bytes, faster than what it stands for
  bool fast_dot_u8 = false;        // the same of unsigned with signed ones
  bool full_subgroups = false;     // can be asked for: else a driver may leave lanes of subgroups empty
  bool varying_subgroups = false;  // can be asked for: else a shader may be told of more lanes than it has
  bool has_shuffle = false;        // subgroups divide a workgroup evenly, and pass values about
  bool tuned_as_cpu =
      false;  // rows are dealt as suits a CPU, whose barriers cost far more than memory that is read apart

  // Reads all of it; `handle` is usable if `missing` is empty.
  static PhysicalDevice read(const InstanceApi& api, VkPhysicalDevice handle);

  // The families that kernels and copies go to.
  void choose_queues(std::span<const VkQueueFamilyProperties> families);

  bool is_cpu() const { return properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU; }
  // Of a dispatch, and of a batch: half a second of 512 GFLOP/s, of 64 where a GPU is no card of its own, of 8 of a CPU.
  uint64_t max_operations() const {
    return uint64_t{1} << (properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU ? 38 : is_cpu() ? 32 : 35);
  }
  // Shares its memory with the host: one heap, or a driver that says so.
  bool unified() const { return is_cpu() || properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU; }
  // The memory type for a kind of BP_MEMORY_* among those that `allowed` has a bit for, or -1.
  int memory_type(uint32_t kind, uint32_t allowed = UINT32_MAX) const;
  uint64_t heap_bytes(uint32_t kind) const;
  void describe(bp_device_info& info) const;
};

}  // namespace backplane::vulkan
