// SPDX-License-Identifier: Apache-2.0
// The devices of all Level Zero drivers, and the reasons why some of them cannot be used.
#pragma once

#include <backplane/plugin.h>

#include <string>
#include <vector>

#include "launcher.hpp"
#include "runtime/api.hpp"

namespace backplane::level_zero {

// Environment variable. Its value is the width of sub-groups: 8, 16, 32 or 64.
inline constexpr const char* kWidthSetting = "BACKPLANE_LEVEL_ZERO_SUBGROUP";

// A device without tiles, or a tile of a device.
struct PhysicalDevice {
  ze_driver_handle_t driver = nullptr;
  ze_device_handle_t id = nullptr;
  std::string name, version;
  simt::Limits limits;
  uint32_t type = 0;         // BP_DEVICE_*
  uint32_t queue_group = 0;  // ordinal of the command queue group that runs kernels
  bool is_tile = false;
  bool is_integrated = false;
  bool flushes_subnormals = false;
  bool has_f16 = false, has_f64 = false;
  bool has_host_operands = false;  // kernels may access host memory that the driver allocated
  bool has_shared_memory = false;  // the host and kernels may access shared memory concurrently
  bool has_system_memory = false;  // kernels may access all memory of the process
  bool relaxes_limits = false;     // the driver permits allocations above limit_bytes on request
  uint64_t limit_bytes = 0;        // maximum size of allocations without relaxed limits
  uint64_t total_bytes = 0;
  double tick_ns = 0;        // nanoseconds per tick of kernel timestamps
  uint32_t timer_bits = 64;  // valid bits of kernel timestamps, which wrap
  uint8_t uuid[16] = {};

  uint64_t max_buffer_bytes() const { return relaxes_limits ? std::max(limit_bytes, total_bytes) : limit_bytes; }
  uint32_t memory_kinds() const;
  void describe(bp_device_info& info) const;
};

struct Platforms {
  std::vector<PhysicalDevice> devices;  // in the loader's order
  // For each device that the plugin cannot use, its name and the reason, as ": NAME: REASON".
  std::string refused;

  // Returns the devices of the process. The first call starts the drivers. Returns UNAVAILABLE if
  // no device can be used. If a search failed, the next call searches again.
  static kit::Result<const Platforms*> shared();
};

}  // namespace backplane::level_zero
