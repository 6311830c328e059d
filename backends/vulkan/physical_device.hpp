// SPDX-License-Identifier: Apache-2.0
// What a physical device is and can do, read once.
#pragma once

#include "cooperative.hpp"

namespace backplane::vulkan {

struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties{};
  VkPhysicalDeviceMemoryProperties memory{};
  uint8_t uuid[16] = {};
  uint8_t driver_uuid[16] = {};
  std::string driver;             // name and version
  std::string missing;            // why it cannot be used; empty: it can
  uint32_t queue_family = 0;      // with compute
  uint32_t queue_count = 0;       // of the family
  uint32_t copy_family = 0;       // that copies and does nothing else
  uint32_t copy_count = 0;        // its queues; 0: there is no such family
  uint64_t max_allocation = 0;    // bytes of one allocation and one buffer
  uint64_t import_alignment = 0;  // of host memory that can be imported; 0: none can
  bool timestamps = false;        // on the queue family
  bool flushes_f32 = false;       // arithmetic on f32 may flush subnormals
  uint32_t lanes = 0;             // of a subgroup, where compute shaders have ballots and broadcasts; else 0
  CooperativeMatrices matrices;
  bool dots = false;               // VK_KHR_shader_integer_dot_product is there
  bool fast_dots = false;          // and of four packed bytes, of one sign or two, faster than what it stands for
  bool round_to_even_f32 = false;  // the RTE execution mode can be asked for
  bool shuffles = false;           // subgroups divide a workgroup evenly, and pass values about
  bool preserves_nan_f32 = false;  // the SignedZeroInfNanPreserve execution mode can be asked for

  // Reads all of it; `handle` is usable if `missing` is empty.
  static PhysicalDevice read(const InstanceApi& api, VkPhysicalDevice handle);

  bool is_cpu() const { return properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU; }
  // Shares its memory with the host: one heap, or a driver that says so.
  bool unified() const { return is_cpu() || properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU; }
  // The memory type for a kind of BP_MEMORY_*, or -1.
  int memory_type(uint32_t kind) const;
  uint64_t heap_bytes(uint32_t kind) const;
  void describe(bp_device_info& info) const;
};

}  // namespace backplane::vulkan
