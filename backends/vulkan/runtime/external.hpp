// SPDX-License-Identifier: Apache-2.0
// Memory and timeline semaphores that other devices, APIs and processes share by opaque file descriptors.
#pragma once

#include <backplane/kit/external.hpp>
#include <backplane/kit/shared_file.hpp>

#include "runtime/logical_device.hpp"

namespace backplane::vulkan {

// Environment variable. With `on`, devices offer "bp.external".
inline constexpr const char* kExternalSetting = "BACKPLANE_VULKAN_EXTERNAL";
// Returns whether the variable is `on`. Returns UNSUPPORTED for an unknown value.
kit::Result<bool> offers_external();

// The name of the only type of external handles. The name denotes Vulkan's VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT
// for memory, and VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT for semaphores.
inline constexpr std::string_view kExternalType = "opaque_fd";

// Both functions return the operations that the device supports, as flags BP_EXTERNAL_*. shared_memory() returns 0 if
// the driver requires a dedicated allocation for each shared buffer.
uint32_t shared_memory(const InstanceApi& api, VkPhysicalDevice handle);
uint32_t shared_semaphores(const InstanceApi& api, VkPhysicalDevice handle);

// The copy of a caller's descriptor that an import consumes.
class ImportedDescriptor {
 public:
  ImportedDescriptor() = default;
  static kit::Result<ImportedDescriptor> of(const char* slot, int64_t given);
  int get() const { return fd_.get(); }
  // Call end() once, with the result of the driver's import. After a success, the driver owns the descriptor. Converts
  // a failure to INVALID_ARGUMENT, except DEVICE_LOST and a lack of host memory.
  kit::Status end(const char* slot, const kit::Status& result);

 private:
  ImportedDescriptor(kit::Descriptor fd, const struct stat& about) : fd_(std::move(fd)), about_(about) {}
  kit::Descriptor fd_;
  struct stat about_ {};
};

// Sets FD_CLOEXEC on `fd`. Returns an external handle that contains `fd` and the device's uuid, because only this
// physical device can import the descriptor.
bp_external_handle opaque_handle(const LogicalDevice& device, int fd);

// A timeline semaphore that can be exported or was imported.
class Semaphore {
 public:
  // The device must be able to export semaphores if `exportable` is true.
  static kit::Result<std::unique_ptr<Semaphore>> create(LogicalDevice& device, uint64_t value, bool exportable);
  static kit::Result<std::unique_ptr<Semaphore>> open(LogicalDevice& device, const bp_external_handle& handle);
  ~Semaphore();
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  VkSemaphore handle() const { return handle_; }
  kit::Result<bp_external_handle> exported() const;
  // Returns whether the semaphore has reached `value`, or a failure.
  kit::Result<bool> reached(uint64_t value) const;
  // Calls `signal()`, which must submit a signal of `value`. Does nothing if the semaphore has already reached `value`,
  // or if an earlier call has submitted this value or a higher one, because Vulkan forbids signals that do not increase
  // the value.
  template <class Signal>
  kit::Status raise(uint64_t value, const Signal& signal) {
    std::lock_guard lock(mutex_);
    if (value <= highest_) return {};
    auto passed = reached(value);
    if (!passed.ok()) return passed.status();
    kit::Status status = passed.value() ? kit::Status() : signal();
    if (status.ok()) highest_ = value;
    return status;
  }
  // Raises the semaphore to `value` from the host, before the call returns.
  kit::Status raise_now(uint64_t value);

 private:
  Semaphore(LogicalDevice& device, VkSemaphore handle) : device_(device), handle_(handle) {}

  LogicalDevice& device_;
  const VkSemaphore handle_;
  std::mutex mutex_;      // guards highest_, and keeps signals in the order of their values
  uint64_t highest_ = 0;  // the highest value that was submitted or reached
};

}  // namespace backplane::vulkan
