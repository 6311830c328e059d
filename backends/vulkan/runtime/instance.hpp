// SPDX-License-Identifier: Apache-2.0
// The Vulkan instance, its physical devices, and messages of the validation layer.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "runtime/physical_device.hpp"

namespace backplane::vulkan {

// Environment variable. The value 1 enables the validation layer, including its checks of
// synchronisation and of best practices. After the layer's first message, every wait and every
// creation of a plan or buffer fails.
inline constexpr const char* kValidationSetting = "BACKPLANE_VULKAN_VALIDATION";

// Records the first message of the validation layer. Any thread may call add() and status().
class Messages {
 public:
  void add(const char* message);
  // Returns INTERNAL with the first message, or OK if there is no message.
  kit::Status status() const;

 private:
  std::atomic<bool> any_{false};
  mutable std::mutex mutex_;
  std::string first_;
};

class Instance {
 public:
  // Returns the instance that the whole process shares. The first call creates the instance. The
  // instance is never destroyed, because loaders and drivers (at least loader 1.3.239 and Mesa
  // 22.3) leak memory per instance. The plugin therefore stays loaded, and the instance must not
  // refer to a bp_host, which the host may destroy before the process ends. Returns UNAVAILABLE,
  // with the reasons, if no driver has a usable device. The next call then tries again.
  static kit::Result<std::shared_ptr<const Instance>> shared();
  // Creates a separate instance from `library`.
  static kit::Result<std::shared_ptr<const Instance>> create(std::shared_ptr<Library> library);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const InstanceApi& api() const { return api_; }
  VkInstance handle() const { return handle_; }
  const std::vector<PhysicalDevice>& devices() const { return devices_; }  // usable devices
  const std::string& refused() const { return refused_; }                  // unusable devices and what they lack
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
