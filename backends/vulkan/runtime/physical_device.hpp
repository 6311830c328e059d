// SPDX-License-Identifier: Apache-2.0
// The properties and features of a physical device, read once.
#pragma once

#include "runtime/cooperative.hpp"
#include "runtime/float_controls.hpp"

namespace backplane::vulkan {

inline constexpr const char* kPortabilitySubset = "VK_KHR_portability_subset";  // only the beta headers declare it

// The usage flags of every buffer.
inline constexpr VkBufferUsageFlags kBufferUsage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                                   VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                                                   VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;

// Memory types that need features which are not enabled, or that buffers cannot use.
inline constexpr VkMemoryPropertyFlags kUnusableMemory =
    VK_MEMORY_PROPERTY_PROTECTED_BIT | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT |
    VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD;

// Environment: with `off`, reductions use shared memory instead of subgroup shuffles.
inline constexpr const char* kSubgroupsSetting = "BACKPLANE_VULKAN_SUBGROUPS";
// Environment: `cpu` or `gpu`, the kind of device that reductions are tuned for, whatever the
// device is.
inline constexpr const char* kReductionsSetting = "BACKPLANE_VULKAN_ROWS";

struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties{};
  VkPhysicalDeviceMemoryProperties memory{};
  uint8_t uuid[16] = {};
  uint8_t driver_uuid[16] = {};
  std::string driver;                   // name and version
  std::string missing;                  // why it cannot be used; empty: it can
  uint32_t queue_family = 0;            // supports compute
  uint32_t queue_count = 0;             // of the family
  uint32_t copy_family = 0;             // supports copies and nothing else
  uint32_t copy_count = 0;              // its queues; 0: no such family
  uint64_t max_allocation = 0;          // bytes, of an allocation and of a buffer
  bool portability = false;             // non-conformant: VK_KHR_portability_subset must be enabled
  uint64_t import_alignment = 0;        // of imported host memory; 0: not supported
  uint32_t timestamp_bits = 0;          // of the queue family's clock; 0: it has none
  FloatControls float_controls;         // supported
  uint32_t subgroup_size = 0;           // if compute shaders have ballots and broadcasts; else 0
  uint32_t required_subgroup_size = 0;  // the size that pipelines with ballots require; 0: the device's own
  CooperativeMatrices matrices;
  bool has_dot = false;            // VK_KHR_shader_integer_dot_product
  bool fast_dot_i8 = false;        // dot products of four packed signed bytes are accelerated
  bool fast_dot_u8 = false;        // the same for unsigned with signed bytes
  bool full_subgroups = false;     // supported; otherwise a driver may leave threads of a subgroup inactive
  bool varying_subgroups = false;  // supported; otherwise a shader may see a larger size than it has
  bool has_shuffle = false;        // subgroup shuffles are usable, and subgroups divide a workgroup evenly
  bool tuned_as_cpu = false;       // reductions and copies suit a CPU, whose barriers cost more than strided reads

  // Reads everything. The device is usable if `missing` is empty.
  static PhysicalDevice read(const InstanceApi& api, VkPhysicalDevice handle);

  // Chooses the queue families for kernels and for copies.
  void choose_queues(std::span<const VkQueueFamilyProperties> families);

  bool is_cpu() const { return properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU; }
  // The operations of a dispatch or batch that take half a second: at 512 GFLOP/s, at 64 for an
  // integrated GPU, at 8 for a CPU.
  uint64_t max_operations() const {
    return uint64_t{1} << (properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU ? 38 : is_cpu() ? 32 : 35);
  }
  // Whether the device shares its memory with the host.
  bool unified() const { return is_cpu() || properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU; }
  // The memory type for a kind of BP_MEMORY_*, among the types in the mask `allowed`; or -1.
  int memory_type(uint32_t kind, uint32_t allowed = UINT32_MAX) const;
  uint64_t heap_bytes(uint32_t kind) const;
  void describe(bp_device_info& info) const;
};

}  // namespace backplane::vulkan
