/* SPDX-License-Identifier: Apache-2.0 */
/* A Vulkan driver that fails as the environment variable FAILING_DRIVER requests. With `instance`,
 * the driver cannot create an instance. With `devices`, the driver cannot list its devices. With
 * `none`, the driver has no devices. */
#include <stdlib.h>
#include <string.h>
#define VK_NO_PROTOTYPES
#include <vulkan/vk_icd.h>

static int fails(const char* how) {
  const char* requested = getenv("FAILING_DRIVER");
  return requested != NULL && strcmp(requested, how) == 0;
}

/* The loader stores its own data in the first word of the object that a dispatchable handle refers
 * to. */
static VK_LOADER_DATA instance_data;

static VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* info, const VkAllocationCallbacks* allocator,
                                           VkInstance* out) {
  (void)info;
  (void)allocator;
  if (fails("instance")) return VK_ERROR_INITIALIZATION_FAILED;
  set_loader_magic_value(&instance_data);
  *out = (VkInstance)&instance_data;
  return VK_SUCCESS;
}

static void VKAPI_CALL destroy_instance(VkInstance instance, const VkAllocationCallbacks* allocator) {
  (void)instance;
  (void)allocator;
}

static VkResult VKAPI_CALL list_devices(VkInstance instance, uint32_t* count, VkPhysicalDevice* out) {
  (void)instance;
  (void)out;
  *count = 0;
  return fails("devices") ? VK_ERROR_INITIALIZATION_FAILED : VK_SUCCESS;
}

static VkResult VKAPI_CALL list_extensions(const char* layer, uint32_t* count, VkExtensionProperties* out) {
  (void)layer;
  (void)out;
  *count = 0;
  return VK_SUCCESS;
}

static VkResult VKAPI_CALL version(uint32_t* out) {
  *out = VK_API_VERSION_1_3;
  return VK_SUCCESS;
}

/* A placeholder for functions that a driver must have, but that the loader does not call in these
 * tests. */
static void VKAPI_CALL unused(void) { abort(); }

__attribute__((visibility("default"))) PFN_vkVoidFunction VKAPI_CALL vk_icdGetInstanceProcAddr(VkInstance instance,
                                                                                               const char* name) {
  (void)instance;
  if (strcmp(name, "vkCreateInstance") == 0) return (PFN_vkVoidFunction)create_instance;
  if (strcmp(name, "vkDestroyInstance") == 0) return (PFN_vkVoidFunction)destroy_instance;
  if (strcmp(name, "vkEnumeratePhysicalDevices") == 0) return (PFN_vkVoidFunction)list_devices;
  if (strcmp(name, "vkEnumerateInstanceExtensionProperties") == 0) return (PFN_vkVoidFunction)list_extensions;
  if (strcmp(name, "vkEnumerateInstanceVersion") == 0) return (PFN_vkVoidFunction)version;
  if (strncmp(name, "vkGetPhysicalDevice", 19) == 0 || strncmp(name, "vkCreateDevice", 14) == 0 ||
      strncmp(name, "vkGetDeviceProcAddr", 19) == 0 || strncmp(name, "vkEnumerateDevice", 17) == 0)
    return unused;
  return NULL;
}

__attribute__((visibility("default"))) VkResult VKAPI_CALL
vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t* version_) {
  if (*version_ > 5) *version_ = 5;
  return VK_SUCCESS;
}
