// SPDX-License-Identifier: Apache-2.0
// The Vulkan instance, its physical devices, and the messages of the validation layer.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "runtime/physical_device.hpp"

namespace backplane::vulkan {

// Environment variable: 1 enables the validation layer, with synchronisation validation and best
// practices. The layer's first message fails all later waits and plans.
inline constexpr const char* kValidationSetting = "BACKPLANE_VULKAN_VALIDATION";

// The messages of the validation layer.
class Messages {
 public:
  void add(const char* message);
  // INTERNAL with the first message, if there is one.
  kit::Status status() const;

 private:
  std::atomic<bool> any_{false};
  mutable std::mutex mutex_;
  std::string first_;
};

class Instance {
 public:
  // The process's shared instance. The first call creates it; it is never destroyed, because
  // loaders and drivers (at least 1.3.239 and Mesa 22.3) leak memory with each instance. The plugin
  // therefore stays mapped. The instance holds no reference to a host. Returns UNAVAILABLE, with
  // the reasons, if no driver has a usable device; the next call tries again.
  static kit::Result<std::shared_ptr<const Instance>> shared();
  // Creates a separate instance from `library`.
  static kit::Result<std::shared_ptr<const Instance>> create(std::shared_ptr<Library> library);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const InstanceApi& api() const { return api_; }
  const std::vector<PhysicalDevice>& devices() const { return devices_; }  // the usable ones
  const std::string& refused() const { return refused_; }                  // why the others are unusable, as text
  const Messages& messages() const { return messages_; }

 private:
  explicit Instance(std::shared_ptr<Library> library) : library_(std::move(library)) {}
  kit::Status start();
  kit::Status find_devices();

  std::shared_ptr<Library> library_;
  InstanceApi api_;
  VkInstance handle_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  Messages messages_;
  std::vector<PhysicalDevice> devices_;
  std::string refused_;
};

}  // namespace backplane::vulkan
