// SPDX-License-Identifier: Apache-2.0
// The instance of Vulkan, its physical devices, and what the validation layer says.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "runtime/physical_device.hpp"

namespace backplane::vulkan {

// Environment: with 1 the validation layer (also of synchronisation and best practices) checks every call, and its first message fails the
// waits and plans that follow.
inline constexpr const char* kValidationSetting = "BACKPLANE_VULKAN_VALIDATION";

// What the validation layer said.
class Messages {
 public:
  void add(const char* message);
  // INTERNAL with the first message, if there was one.
  kit::Status status() const;

 private:
  std::atomic<bool> any_{false};
  mutable std::mutex mutex_;
  std::string first_;
};

class Instance {
 public:
  // The process's one, started at the first call. It is never ended: loaders and drivers (1.3.239 and Mesa 22.3, at least)
  // leave memory behind each time that they are, so the plugin stays mapped and keeps it. It holds nothing of a host's.
  // UNAVAILABLE where no driver has a device that can be used, with the reasons; the next call tries again.
  static kit::Result<std::shared_ptr<const Instance>> shared();
  // One of its own, of the loader `library`.
  static kit::Result<std::shared_ptr<const Instance>> create(std::shared_ptr<Library> library);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const InstanceApi& api() const { return api_; }
  const std::vector<PhysicalDevice>& devices() const { return devices_; }  // those that can be used
  const std::string& refused() const { return refused_; }                  // the others, and why; for people
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
