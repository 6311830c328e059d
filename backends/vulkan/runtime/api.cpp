// SPDX-License-Identifier: Apache-2.0
#include "runtime/api.hpp"

#include <dlfcn.h>

namespace backplane::vulkan {

namespace {

constexpr const char* kLoader = "libvulkan.so.1";

kit::Status missing(const char* name) {
  return {BP_UNAVAILABLE,
          kit::text("vulkan: the driver has no ", name, ", which Vulkan 1.2 demands; install a newer driver")};
}

const char* name_of(VkResult result) {
  switch (result) {
#define BP_VK_RESULT(name) \
  case name:               \
    return #name;
    BP_VK_RESULT(VK_TIMEOUT)
    BP_VK_RESULT(VK_NOT_READY)
    BP_VK_RESULT(VK_INCOMPLETE)
    BP_VK_RESULT(VK_ERROR_OUT_OF_HOST_MEMORY)
    BP_VK_RESULT(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    BP_VK_RESULT(VK_ERROR_INITIALIZATION_FAILED)
    BP_VK_RESULT(VK_ERROR_DEVICE_LOST)
    BP_VK_RESULT(VK_ERROR_MEMORY_MAP_FAILED)
    BP_VK_RESULT(VK_ERROR_LAYER_NOT_PRESENT)
    BP_VK_RESULT(VK_ERROR_EXTENSION_NOT_PRESENT)
    BP_VK_RESULT(VK_ERROR_FEATURE_NOT_PRESENT)
    BP_VK_RESULT(VK_ERROR_INCOMPATIBLE_DRIVER)
    BP_VK_RESULT(VK_ERROR_TOO_MANY_OBJECTS)
    BP_VK_RESULT(VK_ERROR_OUT_OF_POOL_MEMORY)
    BP_VK_RESULT(VK_ERROR_FRAGMENTATION)
#undef BP_VK_RESULT
    default:
      return "an unknown result";
  }
}

bp_status code_of(VkResult result) {
  switch (result) {
    case VK_SUCCESS:
      return BP_OK;
    case VK_TIMEOUT:
      return BP_TIMEOUT;
    case VK_NOT_READY:
      return BP_NOT_READY;
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_FRAGMENTATION:
    case VK_ERROR_TOO_MANY_OBJECTS:
    case VK_ERROR_MEMORY_MAP_FAILED:
      return BP_OUT_OF_MEMORY;
    case VK_ERROR_DEVICE_LOST:
      return BP_DEVICE_LOST;
    case VK_ERROR_INITIALIZATION_FAILED:
    case VK_ERROR_INCOMPATIBLE_DRIVER:
    case VK_ERROR_LAYER_NOT_PRESENT:
    case VK_ERROR_EXTENSION_NOT_PRESENT:
    case VK_ERROR_FEATURE_NOT_PRESENT:
      return BP_UNAVAILABLE;
    default:
      return BP_INTERNAL;
  }
}

const char* advice_for(bp_status code) {
  switch (code) {
    case BP_OUT_OF_MEMORY:
      return "; free buffers, or trim the allocator, and try again";
    case BP_DEVICE_LOST:
      return "; close the device and open it again";
    case BP_UNAVAILABLE:
      return "; see what vulkaninfo says of the driver";
    default:
      return "; report it with the driver's version";
  }
}

}  // namespace

kit::Status status_of(VkResult result, const char* what) {
  const bp_status code = code_of(result);
  if (code == BP_OK) return {};
  if (code == BP_TIMEOUT) return kit::timed_out();
  return {code, kit::text("vulkan: ", what, " returned ", name_of(result), " (", int{result}, ")", advice_for(code)),
          int64_t{result}};
}

kit::Result<std::shared_ptr<Library>> Library::open() {
  void* handle = ::dlopen(kLoader, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    return kit::Status{BP_UNAVAILABLE, kit::text("vulkan: the loader ", kLoader, " cannot be opened (",
                                                 why == nullptr ? "" : why, "); install a Vulkan loader and a driver")};
  }
  std::shared_ptr<Library> library(new Library(handle));
  library->get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(::dlsym(handle, "vkGetInstanceProcAddr"));
  if (library->get == nullptr) return missing("vkGetInstanceProcAddr");
#define BP_VK_GLOBAL(name)                                                    \
  library->name = reinterpret_cast<PFN_##name>(library->get(nullptr, #name)); \
  if (library->name == nullptr) return missing(#name);
#define BP_VK_INSTANCE(name)
#define BP_VK_DEVICE(name)
#include "runtime/functions.def"
#undef BP_VK_GLOBAL
#undef BP_VK_INSTANCE
#undef BP_VK_DEVICE
  return library;
}

Library::~Library() { ::dlclose(handle_); }

kit::Status InstanceApi::load(const Library& library, VkInstance instance) {
#define BP_VK_GLOBAL(name)
#define BP_VK_INSTANCE(name)                                         \
  name = reinterpret_cast<PFN_##name>(library.get(instance, #name)); \
  if (name == nullptr) return missing(#name);
#define BP_VK_DEVICE(name)
#include "runtime/functions.def"
#undef BP_VK_GLOBAL
#undef BP_VK_INSTANCE
#undef BP_VK_DEVICE
  vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR = reinterpret_cast<GetCooperativeMatrixProperties>(
      library.get(instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
  return {};
}

kit::Status DeviceApi::load(const InstanceApi& instance, VkDevice device) {
#define BP_VK_GLOBAL(name)
#define BP_VK_INSTANCE(name)
#define BP_VK_DEVICE(name)                                                          \
  name = reinterpret_cast<PFN_##name>(instance.vkGetDeviceProcAddr(device, #name)); \
  if (name == nullptr) return missing(#name);
#include "runtime/functions.def"
#undef BP_VK_GLOBAL
#undef BP_VK_INSTANCE
#undef BP_VK_DEVICE
  vkGetMemoryHostPointerPropertiesEXT = reinterpret_cast<PFN_vkGetMemoryHostPointerPropertiesEXT>(
      instance.vkGetDeviceProcAddr(device, "vkGetMemoryHostPointerPropertiesEXT"));
  vkGetMemoryFdKHR = reinterpret_cast<PFN_vkGetMemoryFdKHR>(instance.vkGetDeviceProcAddr(device, "vkGetMemoryFdKHR"));
  vkGetSemaphoreFdKHR =
      reinterpret_cast<PFN_vkGetSemaphoreFdKHR>(instance.vkGetDeviceProcAddr(device, "vkGetSemaphoreFdKHR"));
  vkImportSemaphoreFdKHR =
      reinterpret_cast<PFN_vkImportSemaphoreFdKHR>(instance.vkGetDeviceProcAddr(device, "vkImportSemaphoreFdKHR"));
  return {};
}

}  // namespace backplane::vulkan
