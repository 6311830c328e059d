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

// Properties of memory types that need features which are not enabled, or that buffers cannot use.
inline constexpr VkMemoryPropertyFlags kUnusableMemory =
    VK_MEMORY_PROPERTY_PROTECTED_BIT | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT |
    VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD;

// Environment variable: with `off`, reductions use shared memory instead of subgroup shuffles.
inline constexpr const char* kSubgroupsSetting = "BACKPLANE_VULKAN_SUBGROUPS";
// Environment variable: `cpu` or `gpu`, the kind of device that reductions and copies are tuned
// for, regardless of the actual device.
inline constexpr const char* kReductionsSetting = "BACKPLANE_VULKAN_ROWS";

struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties{};
  VkPhysicalDeviceMemoryProperties memory{};
  uint8_t uuid[16] = {};
  uint8_t driver_uuid[16] = {};
  std::string driver;                   // name and version
  std::string missing;                  // what an unusable device lacks; empty if the device is usable
  uint32_t queue_family = 0;            // the family for kernels, which supports compute
  uint32_t queue_count = 0;             // number of queues of that family
  uint32_t copy_family = 0;             // a family that supports only copies
  uint32_t copy_count = 0;              // number of its queues; 0 if there is no such family
  uint64_t max_allocation = 0;          // maximum bytes of an allocation and of a buffer
  bool portability = false;             // non-conformant: VK_KHR_portability_subset must be enabled
  uint64_t import_alignment = 0;        // alignment of imported host memory; 0 if not supported
  uint32_t timestamp_bits = 0;          // valid bits of the queue family's clock; 0 if there is no clock
  FloatControls float_controls;         // the modes that are supported
  uint32_t subgroup_size = 0;           // 0 unless compute shaders have ballots and broadcasts
  uint32_t required_subgroup_size = 0;  // the size that pipelines with ballots require; 0 if the device's size
  CooperativeMatrices matrices;
  bool has_dot = false;            // VK_KHR_shader_integer_dot_product
  bool fast_dot_i8 = false;        // dot products of four packed signed bytes are accelerated
  bool fast_dot_u8 = false;        // the same for unsigned by signed bytes
  bool full_subgroups = false;     // subgroups can be full; otherwise some threads may be inactive
  bool varying_subgroups = false;  // shaders can see their actual subgroup size, not a larger one
  bool has_shuffle = false;        // subgroup shuffles are usable, and subgroups divide a workgroup evenly
  bool tuned_as_cpu = false;       // tunes reductions and copies for costly barriers

  // Reads everything. The device is usable if `missing` is empty.
  static PhysicalDevice read(const InstanceApi& api, VkPhysicalDevice handle);

  // Chooses the queue families for kernels and for copies.
  void choose_queues(std::span<const VkQueueFamilyProperties> families);

  bool is_cpu() const { return properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU; }
  // The number of operations that a dispatch or batch may do, about half a second's work. It
  // assumes 512 GFLOP/s, 64 for an integrated GPU, and 8 for a CPU.
  uint64_t max_operations() const {
    return uint64_t{1} << (properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU ? 38 : is_cpu() ? 32 : 35);
  }
  // Whether the device shares its memory with the host.
  bool unified() const { return is_cpu() || properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU; }
  // The memory type for a kind of BP_MEMORY_*, among the types in the mask `allowed`, or -1 if
  // there is none.
  int memory_type(uint32_t kind, uint32_t allowed = UINT32_MAX) const;
  uint64_t heap_bytes(uint32_t kind) const;
  void describe(bp_device_info& info) const;
};

}  // namespace backplane::vulkan
