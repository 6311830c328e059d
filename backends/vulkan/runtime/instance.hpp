// SPDX-License-Identifier: Apache-2.0
// The Vulkan instance, its physical devices, and the messages of the validation layer.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "runtime/physical_device.hpp"

namespace backplane::vulkan {

// Environment: 1 enables the validation layer, with synchronisation validation and best practices.
// Its first message fails the waits and plans that follow.
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
  // The process's shared instance, made by the first call and never destroyed: loaders and drivers
  // (at least 1.3.239 and Mesa 22.3) leak memory with each instance, so the plugin stays mapped and
  // keeps it. It holds no reference to a host. UNAVAILABLE, with the reasons, if no driver has a
  // usable device; the next call tries again.
  static kit::Result<std::shared_ptr<const Instance>> shared();
  // A separate instance, made with `library`.
  static kit::Result<std::shared_ptr<const Instance>> create(std::shared_ptr<Library> library);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const InstanceApi& api() const { return api_; }
  const std::vector<PhysicalDevice>& devices() const { return devices_; }  // the usable ones
  const std::string& refused() const { return refused_; }                  // the others with the reasons, as text
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
