// SPDX-License-Identifier: Apache-2.0
// The functions of Vulkan that are used, looked up when the plugin runs: nothing is linked.
#pragma once

#include <backplane/kit/error.hpp>
#include <memory>

#include "runtime/cooperative_api.hpp"

namespace backplane::vulkan {

// The loader of the system, which finds the drivers.
class Library {
 public:
  // UNAVAILABLE where there is none, or one older than Vulkan 1.2.
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
  // Null where no device's driver has the extension.
  GetCooperativeMatrixProperties vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR = nullptr;
  kit::Status load(const Library& library, VkInstance instance);
};

// The functions of a device, past the loader's own dispatch.
struct DeviceApi {
#define BP_VK_GLOBAL(name)
#define BP_VK_INSTANCE(name)
#define BP_VK_DEVICE(name) PFN_##name name = nullptr;
#include "runtime/functions.def"
#undef BP_VK_GLOBAL
#undef BP_VK_INSTANCE
#undef BP_VK_DEVICE
  PFN_vkGetMemoryHostPointerPropertiesEXT vkGetMemoryHostPointerPropertiesEXT =
      nullptr;  // null where it is not enabled
  kit::Status load(const InstanceApi& instance, VkDevice device);
};

// A struct of Vulkan's, all zero but for its type and what it is chained to.
template <class T>
T chained(VkStructureType type, void* next = nullptr) {
  T out{};
  out.sType = type;
  out.pNext = next;
  return out;
}

// What a result means to the caller; `what` is the call that gave it. The number stays as the vendor's code.
kit::Status status_of(VkResult result, const char* what);

}  // namespace backplane::vulkan
