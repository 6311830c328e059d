// SPDX-License-Identifier: Apache-2.0
// The Vulkan functions that the plugin calls. The plugin looks up the functions at run time and
// does not link a Vulkan library.
#pragma once

#include <backplane/kit/error.hpp>
#include <memory>

#include "runtime/cooperative_api.hpp"

namespace backplane::vulkan {

// The system's Vulkan loader, which finds the drivers.
class Library {
 public:
  // Opens the loader. Returns UNAVAILABLE if the system has no loader, or if the loader lacks a
  // function that the plugin needs.
  static kit::Result<std::shared_ptr<Library>> open();
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

#define BP_VK_GLOBAL(name) PFN_##name name = nullptr;
#define BP_VK_INSTANCE(name)
#define BP_VK_DEVICE(name)
#include "runtime/functions.def"
#undef BP_VK_GLOBAL
#undef BP_VK_INSTANCE
#undef BP_VK_DEVICE
  PFN_vkGetInstanceProcAddr get = nullptr;

 private:
  explicit Library(void* handle) : handle_(handle) {}
  void* handle_;
};

// Vulkan functions that are looked up with an instance.
struct InstanceApi {
#define BP_VK_GLOBAL(name)
#define BP_VK_INSTANCE(name) PFN_##name name = nullptr;
#define BP_VK_DEVICE(name)
#include "runtime/functions.def"
#undef BP_VK_GLOBAL
#undef BP_VK_INSTANCE
#undef BP_VK_DEVICE
  // The function is null if no driver has VK_KHR_cooperative_matrix.
  GetCooperativeMatrixProperties vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR = nullptr;
  kit::Status load(const Library& library, VkInstance instance);
};

// Vulkan functions that are looked up with a device, so that calls bypass the loader's dispatch.
struct DeviceApi {
#define BP_VK_GLOBAL(name)
#define BP_VK_INSTANCE(name)
#define BP_VK_DEVICE(name) PFN_##name name = nullptr;
#include "runtime/functions.def"
#undef BP_VK_GLOBAL
#undef BP_VK_INSTANCE
#undef BP_VK_DEVICE
  // The function is null if VK_EXT_external_memory_host is not enabled.
  PFN_vkGetMemoryHostPointerPropertiesEXT vkGetMemoryHostPointerPropertiesEXT = nullptr;
  // vkGetMemoryFdKHR is null if VK_KHR_external_memory_fd is not enabled. The other two functions are null if
  // VK_KHR_external_semaphore_fd is not enabled.
  PFN_vkGetMemoryFdKHR vkGetMemoryFdKHR = nullptr;
  PFN_vkGetSemaphoreFdKHR vkGetSemaphoreFdKHR = nullptr;
  PFN_vkImportSemaphoreFdKHR vkImportSemaphoreFdKHR = nullptr;
  kit::Status load(const InstanceApi& instance, VkDevice device);
};

// Returns a zeroed Vulkan struct with its `sType` set to `type` and its `pNext` set to `next`.
template <class T>
T chained(VkStructureType type, void* next = nullptr) {
  T out{};
  out.sType = type;
  out.pNext = next;
  return out;
}

// Converts the result of the Vulkan function `what` to a status. The status has `result` as its
// vendor code.
kit::Status status_of(VkResult result, const char* what);

}  // namespace backplane::vulkan
