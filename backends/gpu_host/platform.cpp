// SPDX-License-Identifier: Apache-2.0
#include "gpu_host/platform.hpp"

#include "gpu_host/fork.hpp"

namespace backplane::gpu_host {

kit::Status Platform::find_devices() {
  auto loaded = load_();
  if (!loaded.ok()) return loaded.status();
  stack_ = loaded.value();
  if (kit::Status status = after_fork(stack_->plugin()); !status.ok()) {
    return {BP_UNAVAILABLE, status.message()};
  }
  auto count = stack_->count();
  if (!count.ok()) return count.status();
  watch_forks();
  refused_.clear();
  for (int ordinal = 0; ordinal < count.value(); ++ordinal) {
    PhysicalDevice device;
    device.ordinal = ordinal;
    if (kit::Status status = stack_->describe(ordinal, device); !status.ok()) device.refusal = status.message();
    if (device.refusal.empty()) {
      devices_.push_back(std::move(device));
    } else {
      refused_ += kit::text(": ", device.name.empty() ? "device " + std::to_string(ordinal) : device.name, ": ",
                            device.refusal);
    }
  }
  if (!devices_.empty()) return {};
  return {BP_UNAVAILABLE, kit::text(stack_->plugin(), ": the driver has no device that can run the kernels", refused_)};
}

kit::Result<uint32_t> Platform::count() {
  std::lock_guard lock(mutex_);
  if (devices_.empty()) {
    if (kit::Status status = find_devices(); !status.ok()) return status;
  }
  return static_cast<uint32_t>(devices_.size());
}

kit::Status Platform::info(uint32_t index, bp_device_info& info) {
  if (auto found = count(); !found.ok()) return found.status();
  const PhysicalDevice& device = devices_[index];
  const DlpackTypes types = stack_->dlpack_types();
  info.type = BP_DEVICE_GPU;
  std::strncpy(info.name, device.name.c_str(), sizeof(info.name) - 1);
  std::strncpy(info.driver, kit::text(device.driver, ", ", device.architecture).c_str(), sizeof(info.driver) - 1);
  static_assert(sizeof(info.uuid) == sizeof(device.uuid));
  std::memcpy(info.uuid, device.uuid, sizeof(device.uuid));
  info.dlpack_type[BP_MEMORY_DEVICE] = types.device;
  info.dlpack_type[BP_MEMORY_HOST] = types.host;
  info.memory_kinds = 1u << BP_MEMORY_DEVICE | 1u << BP_MEMORY_HOST;
  if (device.has_shared_memory) {
    info.memory_kinds |= 1u << BP_MEMORY_SHARED;
    info.dlpack_type[BP_MEMORY_SHARED] = types.shared;
  }
  info.dlpack_id = device.ordinal;
  info.max_buffer_bytes = device.total_bytes;
  info.capabilities = BP_CAP_DETERMINISTIC | BP_CAP_PROCESS_ADDRESSES | BP_CAP_HOST_OPERANDS;
  if (device.is_integrated) info.capabilities |= BP_CAP_UNIFIED_MEMORY;
  return {};
}

kit::Result<OpenedDevice*> Platform::open(uint32_t index) {
  if (auto found = count(); !found.ok()) return found.status();
  if (kit::Status status = after_fork(stack_->plugin()); !status.ok()) {
    return kit::Status{BP_UNAVAILABLE, status.message()};
  }
  std::lock_guard lock(mutex_);
  std::unique_ptr<OpenedDevice>& entry = opened_[index];
  if (entry != nullptr) return entry.get();
  auto context = Context::create(*stack_, devices_[index], registrations_);
  if (!context.ok()) return context.status();
  auto made = std::make_unique<OpenedDevice>(std::move(context.value()));
  if (kit::Status status = made->products.open_required(); !status.ok()) return status;
  entry = std::move(made);
  simt::DriverCall::stop_at_exit();
  return entry.get();
}

}  // namespace backplane::gpu_host
