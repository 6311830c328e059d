// SPDX-License-Identifier: Apache-2.0
// The Vulkan functions that the plugin calls. They are looked up at run time; nothing is linked.
#pragma once

#include <backplane/kit/error.hpp>
#include <memory>

#include "runtime/cooperative_api.hpp"

namespace backplane::vulkan {

// The system's Vulkan loader, which finds the drivers.
class Library {
 public:
  // UNAVAILABLE if there is no loader, or one older than Vulkan 1.2.
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

// The functions of an instance.
struct InstanceApi {
#define BP_VK_GLOBAL(name)
#define BP_VK_INSTANCE(name) PFN_##name name = nullptr;
#define BP_VK_DEVICE(name)
#include "runtime/functions.def"
#undef BP_VK_GLOBAL
#undef BP_VK_INSTANCE
#undef BP_VK_DEVICE
  // Null if no driver has the extension.
  GetCooperativeMatrixProperties vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR = nullptr;
  kit::Status load(const Library& library, VkInstance instance);
};

// The functions of a device, looked up from the device so that calls bypass the loader's dispatch.
struct DeviceApi {
#define BP_VK_GLOBAL(name)
#define BP_VK_INSTANCE(name)
#define BP_VK_DEVICE(name) PFN_##name name = nullptr;
#include "runtime/functions.def"
#undef BP_VK_GLOBAL
#undef BP_VK_INSTANCE
#undef BP_VK_DEVICE
  PFN_vkGetMemoryHostPointerPropertiesEXT vkGetMemoryHostPointerPropertiesEXT = nullptr;  // null if not enabled
  kit::Status load(const InstanceApi& instance, VkDevice device);
};

// Returns a Vulkan struct that is zero except for its type and the next struct of its chain.
template <class T>
T chained(VkStructureType type, void* next = nullptr) {
  T out{};
  out.sType = type;
  out.pNext = next;
  return out;
}

// Converts the result of the call `what` to a status, with the VkResult as the vendor's code.
kit::Status status_of(VkResult result, const char* what);

}  // namespace backplane::vulkan
