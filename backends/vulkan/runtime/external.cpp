// SPDX-License-Identifier: Apache-2.0
#include "runtime/external.hpp"

#include <cstdlib>

namespace backplane::vulkan {

namespace {

constexpr auto kSemaphoreType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;

}  // namespace

kit::Result<bool> offers_external() {
  const char* const given = std::getenv(kExternalSetting);
  const std::string_view setting = given == nullptr ? "" : given;
  if (setting == "on") return true;
  if (setting.empty() || setting == "off") return false;
  return kit::unsupported(kExternalSetting, " is ", setting, "; it may be on or off, or unset");
}

uint32_t shared_memory(const InstanceApi& api, VkPhysicalDevice handle) {
  auto buffers = chained<VkPhysicalDeviceExternalBufferInfo>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO);
  buffers.usage = kBufferUsage;
  buffers.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  auto out = chained<VkExternalBufferProperties>(VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES);
  api.vkGetPhysicalDeviceExternalBufferProperties(handle, &buffers, &out);
  const VkExternalMemoryFeatureFlags features = out.externalMemoryProperties.externalMemoryFeatures;
  if ((features & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT) != 0) return 0;
  return ((features & VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT) != 0 ? BP_EXTERNAL_MEMORY_EXPORT : 0) |
         ((features & VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT) != 0 ? BP_EXTERNAL_MEMORY_IMPORT : 0);
}

uint32_t shared_semaphores(const InstanceApi& api, VkPhysicalDevice handle) {
  auto type = chained<VkSemaphoreTypeCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  auto info =
      chained<VkPhysicalDeviceExternalSemaphoreInfo>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO, &type);
  info.handleType = kSemaphoreType;
  auto out = chained<VkExternalSemaphoreProperties>(VK_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES);
  api.vkGetPhysicalDeviceExternalSemaphoreProperties(handle, &info, &out);
  const VkExternalSemaphoreFeatureFlags features = out.externalSemaphoreFeatures;
  return ((features & VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT) != 0 ? BP_EXTERNAL_SEMAPHORE_EXPORT : 0) |
         ((features & VK_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT) != 0 ? BP_EXTERNAL_SEMAPHORE_IMPORT : 0);
}

kit::Result<ImportedDescriptor> ImportedDescriptor::of(const char* slot, int64_t given) {
  auto fd = kit::duplicate_descriptor(slot, given);
  if (!fd.ok()) return fd.status();
  struct stat about = {};
  (void)::fstat(fd.value().get(), &about);
  return ImportedDescriptor(std::move(fd.value()), about);
}

kit::Status ImportedDescriptor::end(const char* slot, const kit::Status& result) {
  if (result.ok()) {
    (void)fd_.release();  // the driver owns the descriptor
    return {};
  }
  // Mesa 22.3 closes the descriptor of memory even if the import fails.
  struct stat now = {};
  const bool is_open = ::fstat(fd_.get(), &now) == 0 && now.st_dev == about_.st_dev && now.st_ino == about_.st_ino;
  if (!is_open) (void)fd_.release();
  // An import allocates no device memory. If a driver returns VK_ERROR_OUT_OF_DEVICE_MEMORY, the size is wrong, so the
  // status becomes INVALID_ARGUMENT.
  const bool is_full = result.code() == BP_OUT_OF_MEMORY && result.vendor_code() != VK_ERROR_OUT_OF_DEVICE_MEMORY;
  if (is_full || result.code() == BP_DEVICE_LOST) return result;
  return {BP_INVALID_ARGUMENT,
          kit::text(slot, ": the driver does not import the descriptor (", result.message(),
                    "); pass a descriptor and a size that were exported"),
          result.vendor_code()};
}

bp_external_handle opaque_handle(const LogicalDevice& device, int fd) {
  (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
  bp_external_handle out = kit::external_handle(kExternalType, fd);
  std::memcpy(out.uuid, device.physical().uuid, sizeof(out.uuid));
  return out;
}

kit::Result<std::unique_ptr<Semaphore>> Semaphore::create(LogicalDevice& device, uint64_t value, bool exportable) {
  auto exports = chained<VkExportSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO);
  exports.handleTypes = kSemaphoreType;
  auto type =
      chained<VkSemaphoreTypeCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, exportable ? &exports : nullptr);
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  type.initialValue = value;
  auto info = chained<VkSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type);
  VkSemaphore handle = VK_NULL_HANDLE;
  kit::Status status =
      device.check(device.api().vkCreateSemaphore(device.handle(), &info, nullptr, &handle), "vkCreateSemaphore");
  if (!status.ok()) return status;
  return std::unique_ptr<Semaphore>(new Semaphore(device, handle));
}

kit::Result<std::unique_ptr<Semaphore>> Semaphore::open(LogicalDevice& device, const bp_external_handle& handle) {
  auto fd = ImportedDescriptor::of("semaphore_import", handle.fd);
  if (!fd.ok()) return fd.status();
  auto out = create(device, 0, false);
  if (!out.ok()) return out;
  auto info = chained<VkImportSemaphoreFdInfoKHR>(VK_STRUCTURE_TYPE_IMPORT_SEMAPHORE_FD_INFO_KHR);
  info.semaphore = out.value()->handle();
  info.handleType = kSemaphoreType;
  info.fd = fd.value().get();
  const kit::Status status = fd.value().end(
      "semaphore_import",
      device.check(device.api().vkImportSemaphoreFdKHR(device.handle(), &info), "vkImportSemaphoreFdKHR"));
  if (!status.ok()) return status;
  return out;
}

Semaphore::~Semaphore() { device_.api().vkDestroySemaphore(device_.handle(), handle_, nullptr); }

kit::Result<bp_external_handle> Semaphore::exported() const {
  auto info = chained<VkSemaphoreGetFdInfoKHR>(VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR);
  info.semaphore = handle_;
  info.handleType = kSemaphoreType;
  int fd = -1;
  kit::Status status =
      device_.check(device_.api().vkGetSemaphoreFdKHR(device_.handle(), &info, &fd), "vkGetSemaphoreFdKHR");
  if (!status.ok()) return status;
  return opaque_handle(device_, fd);
}

kit::Result<bool> Semaphore::reached(uint64_t value) const {
  uint64_t now = 0;
  kit::Status status = device_.check(device_.api().vkGetSemaphoreCounterValue(device_.handle(), handle_, &now),
                                     "vkGetSemaphoreCounterValue");
  if (!status.ok()) return status;
  return value <= now;
}

kit::Status Semaphore::raise_now(uint64_t value) {
  return raise(value, [&] {
    auto info = chained<VkSemaphoreSignalInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO);
    info.semaphore = handle_;
    info.value = value;
    return device_.check(device_.api().vkSignalSemaphore(device_.handle(), &info), "vkSignalSemaphore");
  });
}

}  // namespace backplane::vulkan
