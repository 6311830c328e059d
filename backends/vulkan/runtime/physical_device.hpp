// SPDX-License-Identifier: Apache-2.0
// The properties and features of a physical device, which are read when the Instance is created.
#pragma once

#include "runtime/cooperative.hpp"
#include "runtime/float_controls.hpp"

namespace backplane::vulkan {

inline constexpr const char* kPortabilitySubset = "VK_KHR_portability_subset";  // only beta headers declare the name

// The usage flags of every buffer.
inline constexpr VkBufferUsageFlags kBufferUsage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                                   VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                                                   VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;

// Memory types with one of these properties are not used, because they need features that are not
// enabled or because buffers cannot use them.
inline constexpr VkMemoryPropertyFlags kUnusableMemory =
    VK_MEMORY_PROPERTY_PROTECTED_BIT | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT |
    VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD;

// Environment variable. With `off`, reductions use shared memory instead of subgroup shuffles.
inline constexpr const char* kSubgroupsSetting = "BACKPLANE_VULKAN_SUBGROUPS";
// Environment variable. The values `cpu` and `gpu` select the kind of device for which reductions
// and copies are tuned, regardless of the actual device.
inline constexpr const char* kReductionsSetting = "BACKPLANE_VULKAN_ROWS";

struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties{};
  VkPhysicalDeviceMemoryProperties memory{};
  uint8_t uuid[16] = {};
  uint8_t driver_uuid[16] = {};
  std::string driver;                   // name and version of the driver
  std::string missing;                  // what an unusable device lacks; empty if the device is usable
  uint32_t queue_family = 0;            // queue family for kernels
  uint32_t queue_count = 0;             // number of queues of `queue_family`
  uint32_t copy_family = 0;             // queue family that supports only copies
  uint32_t copy_count = 0;              // number of queues of `copy_family`; 0 if there is no such family
  uint64_t max_allocation = 0;          // maximum bytes of an allocation and of a buffer
  bool portability = false;             // the driver requires VK_KHR_portability_subset to be enabled
  uint64_t import_alignment = 0;        // alignment of imported host memory in bytes; 0 if imports are unsupported
  uint32_t external = 0;                // supported operations on opaque file descriptors: flags BP_EXTERNAL_*
  uint32_t timestamp_bits = 0;          // valid bits of a timestamp; 0 if timestamps are unusable
  FloatControls float_controls;         // supported floating-point modes
  uint32_t subgroup_size = 0;           // threads per subgroup; 0 if ballots or broadcasts are missing
  uint32_t required_subgroup_size = 0;  // subgroup size that pipelines with ballots request; 0 for the default size
  CooperativeMatrices matrices;
  bool has_dot = false;            // VK_KHR_shader_integer_dot_product is supported
  bool fast_dot_i8 = false;        // dot products of four packed signed bytes are accelerated
  bool fast_dot_u8 = false;        // dot products of packed unsigned bytes with packed signed bytes are accelerated
  bool full_subgroups = false;     // pipelines can require that all threads of subgroups are active
  bool varying_subgroups = false;  // pipelines can allow shaders to see the actual subgroup size
  bool has_shuffle = false;        // subgroup shuffles are usable, and subgroups divide a workgroup evenly
  bool tuned_as_cpu = false;       // kernels are tuned for a CPU, where barriers are costly

  // Reads all members from the driver. The device is usable if `missing` is empty.
  static PhysicalDevice read(const InstanceApi& api, VkPhysicalDevice handle);

  // Chooses the queue families for kernels and for copies.
  void choose_queues(std::span<const VkQueueFamilyProperties> families);

  bool is_cpu() const { return properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU; }
  // The maximum number of arithmetic operations per dispatch or batch, which limits the run time to
  // about half a second. The assumed speed is 512 GFLOP/s for a discrete GPU, 8 GFLOP/s for a CPU,
  // and 64 GFLOP/s for other devices.
  uint64_t max_operations() const {
    return uint64_t{1} << (properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU ? 38 : is_cpu() ? 32 : 35);
  }
  // Returns whether the device shares its memory with the host.
  bool unified() const { return is_cpu() || properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU; }
  // Returns the memory type for `kind` (BP_MEMORY_*) among the types in the bit mask `allowed`, or
  // -1 if there is none.
  int memory_type(uint32_t kind, uint32_t allowed = UINT32_MAX) const;
  uint64_t heap_bytes(uint32_t kind) const;
  void describe(bp_device_info& info) const;
};

}  // namespace backplane::vulkan
