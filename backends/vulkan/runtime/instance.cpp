// SPDX-License-Identifier: Apache-2.0
#include "runtime/instance.hpp"

#include <cstdlib>

#include "runtime/driver_manifests.hpp"

namespace backplane::vulkan {

namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

bool validation_wanted() {
  const char* given = std::getenv(kValidationSetting);
  return given != nullptr && std::string_view(given) == "1";
}

// Returns UNAVAILABLE if an environment variable has an unknown value, so that misspelled values
// are not ignored.
kit::Status check_settings() {
  constexpr const char* kTwoWords[][3] = {
      {kValidationSetting, "0", "1"}, {kSubgroupsSetting, "on", "off"}, {kReductionsSetting, "cpu", "gpu"}};
  for (const auto& [name, one, other] : kTwoWords) {
    const char* given = std::getenv(name);
    const std::string_view word = given == nullptr ? "" : given;
    if (word.empty() || word == one || word == other) continue;
    return {BP_UNAVAILABLE,
            kit::text("vulkan: ", name, " is ", word, "; it may be ", one, " or ", other, ", or unset")};
  }
  return {};
}

// Converts every failure to UNAVAILABLE, because the caller only needs to know that there is no
// usable driver.
kit::Status unavailable(VkResult result, const char* what) {
  const kit::Status status = status_of(result, what);
  return {BP_UNAVAILABLE, status.message(), status.vendor_code()};
}

kit::Status require_layer(const Library& library) {
  uint32_t count = 0;
  VkResult result = library.vkEnumerateInstanceLayerProperties(&count, nullptr);
  std::vector<VkLayerProperties> layers(count);
  if (result == VK_SUCCESS) result = library.vkEnumerateInstanceLayerProperties(&count, layers.data());
  if (result != VK_SUCCESS && result != VK_INCOMPLETE) return unavailable(result, "vkEnumerateInstanceLayerProperties");
  for (const VkLayerProperties& layer : layers) {
    if (std::string_view(layer.layerName) == kValidationLayer) return {};
  }
  return {BP_UNAVAILABLE, kit::text("vulkan: ", kValidationSetting, " requires ", kValidationLayer,
                                    ", which is not installed; install it or unset the variable")};
}

// Returns whether the loader has the extension VK_KHR_portability_enumeration. Such a loader lists non-conformant
// drivers only if the extension is enabled. Enabling the extension is safe, because devices of non-conformant drivers
// report which features they lack.
kit::Result<bool> hides_portable_drivers(const Library& library) {
  uint32_t count = 0;
  VkResult result = library.vkEnumerateInstanceExtensionProperties(nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> all(count);
  if (result == VK_SUCCESS) result = library.vkEnumerateInstanceExtensionProperties(nullptr, &count, all.data());
  if (result != VK_SUCCESS && result != VK_INCOMPLETE)
    return unavailable(result, "vkEnumerateInstanceExtensionProperties");
  return std::ranges::any_of(all, [](const VkExtensionProperties& each) {
    return std::string_view(each.extensionName) == VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME;
  });
}

// Returns whether a message is advice that does not apply to this plugin. All other messages are
// failures. Only the end of an id is compared, because newer layers omit the first word of an id.
bool is_allowed(const char* id) {
  constexpr std::string_view kAllowed[] = {
      // This id advises against VK_EXT_debug_utils. That extension delivers the layer's messages
      // and is enabled only together with the layer.
      "BestPractices-vkCreateInstance-specialuse-extension-debugging",
      // Core allocates large buffers and divides them. Only direct callers of the plugin's table
      // allocate small buffers.
      "BestPractices-vkAllocateMemory-small-allocation",
      "BestPractices-vkBindMemory-small-dedicated-allocation",
      "BestPractices-vkBindBufferMemory-small-dedicated-allocation",  // the vkBindMemory message in newer layers
      "BestPractices-vkAllocateMemory-too-many-objects",
  };
  return id != nullptr && std::ranges::any_of(kAllowed, [&](std::string_view allowed) {
           return std::string_view(id).ends_with(allowed);
         });
}

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data, void* messages) {
  if (!is_allowed(data->pMessageIdName)) static_cast<Messages*>(messages)->add(data->pMessage);
  return VK_FALSE;
}

}  // namespace

void Messages::add(const char* message) {
  {
    std::lock_guard lock(mutex_);
    if (first_.empty()) first_ = message;
  }
  any_.store(true, std::memory_order_release);
}

kit::Status Messages::status() const {
  if (!any_.load(std::memory_order_acquire)) return {};
  std::lock_guard lock(mutex_);
  return {BP_INTERNAL, kit::text("vulkan: the validation layer objects: ", first_)};
}

kit::Result<std::shared_ptr<const Instance>> Instance::shared() {
  // The mutex and the instance are never destroyed, so that no destructor runs at exit.
  static auto* const mutex = new std::mutex;
  static auto* const kept = new std::shared_ptr<const Instance>;
  std::lock_guard lock(*mutex);
  if (*kept == nullptr) {
    auto library = Library::open();
    if (!library.ok()) return library.status();
    auto instance = create(library.value());
    if (!instance.ok()) return instance.status();
    *kept = std::move(instance.value());
  }
  return *kept;
}

kit::Result<std::shared_ptr<const Instance>> Instance::create(std::shared_ptr<Library> library) {
  std::shared_ptr<Instance> instance(new Instance(std::move(library)));
  kit::Status status = instance->start();
  if (status.ok()) status = instance->find_devices();
  if (!status.ok()) return status;
  return std::shared_ptr<const Instance>(std::move(instance));
}

kit::Status Instance::start() {
  if (kit::Status status = check_settings(); !status.ok()) return status;
  uint32_t version = VK_API_VERSION_1_0;
  if (const VkResult result = library_->vkEnumerateInstanceVersion(&version); result != VK_SUCCESS)
    return unavailable(result, "vkEnumerateInstanceVersion");
  if (version < VK_API_VERSION_1_2) {
    return {BP_UNAVAILABLE,
            kit::text("vulkan: the loader has version ", VK_API_VERSION_MAJOR(version), ".",
                      VK_API_VERSION_MINOR(version), ", and the plugin needs version 1.2; install a newer loader")};
  }
  auto application = chained<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  application.pEngineName = "backplane";
  application.apiVersion = VK_API_VERSION_1_2;
  auto info = chained<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  info.pApplicationInfo = &application;

  auto messenger = chained<VkDebugUtilsMessengerCreateInfoEXT>(VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT);
  messenger.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messenger.messageType =
      VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  messenger.pfnUserCallback = on_message;
  messenger.pUserData = &messages_;
  const VkValidationFeatureEnableEXT enabled[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT,
                                                  VK_VALIDATION_FEATURE_ENABLE_BEST_PRACTICES_EXT};
  auto features = chained<VkValidationFeaturesEXT>(VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT, &messenger);
  features.enabledValidationFeatureCount = std::size(enabled);
  features.pEnabledValidationFeatures = enabled;
  std::vector<const char*> extensions;
  auto hidden = hides_portable_drivers(*library_);
  if (!hidden.ok()) return hidden.status();
  if (hidden.value()) {
    extensions.push_back(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
    info.flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
  }
  const bool validate = validation_wanted();
  if (validate) {
    if (kit::Status status = require_layer(*library_); !status.ok()) return status;
    info.pNext = &features;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &kValidationLayer;
    extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  }
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  if (const VkResult result = library_->vkCreateInstance(&info, nullptr, &handle_); result != VK_SUCCESS) {
    handle_ = VK_NULL_HANDLE;
    kit::Status status = unavailable(result, "vkCreateInstance");
    if (result != VK_ERROR_INCOMPATIBLE_DRIVER) return status;
    return {status.code(), status.message() + describe_unusable_drivers(), status.vendor_code()};
  }
  if (kit::Status status = api_.load(*library_, handle_); !status.ok()) return status;
  if (validate) {
    const auto create =
        reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(library_->get(handle_, "vkCreateDebugUtilsMessengerEXT"));
    return status_of(
        create == nullptr ? VK_ERROR_EXTENSION_NOT_PRESENT : create(handle_, &messenger, nullptr, &messenger_),
        "vkCreateDebugUtilsMessengerEXT");
  }
  return {};
}

kit::Status Instance::find_devices() {
  uint32_t count = 0;
  VkResult result = api_.vkEnumeratePhysicalDevices(handle_, &count, nullptr);
  std::vector<VkPhysicalDevice> handles(count);
  if (result == VK_SUCCESS && count != 0) result = api_.vkEnumeratePhysicalDevices(handle_, &count, handles.data());
  if (result != VK_SUCCESS && result != VK_INCOMPLETE) return unavailable(result, "vkEnumeratePhysicalDevices");
  handles.resize(count);
  for (VkPhysicalDevice handle : handles) {
    PhysicalDevice device = PhysicalDevice::read(api_, handle);
    if (device.missing.empty()) {
      devices_.push_back(std::move(device));
      continue;
    }
    refused_ += kit::text("; ", device.properties.deviceName, " lacks ", device.missing);
  }
  if (!devices_.empty()) return {};
  return {BP_UNAVAILABLE, kit::text("vulkan: the loader finds ", count,
                                    " devices, but none of them can be used; install a driver", refused_)};
}

Instance::~Instance() {
  if (handle_ == VK_NULL_HANDLE || api_.vkDestroyInstance == nullptr) return;
  if (messenger_ != VK_NULL_HANDLE) {
    reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(library_->get(handle_, "vkDestroyDebugUtilsMessengerEXT"))(
        handle_, messenger_, nullptr);
  }
  api_.vkDestroyInstance(handle_, nullptr);
}

}  // namespace backplane::vulkan
