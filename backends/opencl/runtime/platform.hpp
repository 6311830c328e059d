// SPDX-License-Identifier: Apache-2.0
// The devices of all OpenCL drivers, and the reasons why some of them cannot be used.
#pragma once

#include <backplane/plugin.h>

#include <string>
#include <vector>

#include "launcher.hpp"
#include "runtime/api.hpp"

namespace backplane::opencl {

// Environment variable. Its value is the width of sub-groups: 8, 16, 32 or 64.
inline constexpr const char* kWidthSetting = "BACKPLANE_OPENCL_SUBGROUP";

struct PhysicalDevice {
  cl_platform_id platform = nullptr;
  cl_device_id id = nullptr;
  std::string name, driver;
  simt::Limits limits;
  bool is_gpu = false;
  bool flushes_subnormals = false;
  uint64_t alignment = 0;  // bytes
  uint64_t max_buffer_bytes = 0;
  uint64_t total_bytes = 0;
  cl_device_svm_capabilities svm = 0;
  // usm_host: the driver has USM host memory. usm_shared: the driver also has USM shared memory,
  // which the host and kernels may access concurrently.
  bool usm_host = false, usm_shared = false;

  bool has_shared_memory() const { return usm_shared || (svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) != 0; }
  bool imports() const { return (svm & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM) != 0; }
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

}  // namespace backplane::opencl
