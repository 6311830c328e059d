// SPDX-License-Identifier: Apache-2.0
// The functions that PyTorch calls for the device type outside of operators, for example to select a device.
#include <ATen/ATen.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "allocator.hpp"
#include "devices.hpp"
#include "generator.hpp"
#include "pinned.hpp"

namespace backplane_torch {
namespace {

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex index) const override { return index >= 0 && index < device_count(); }
  c10::DeviceIndex deviceCount() const override { return device_count(); }
  void setCurrentDevice(c10::DeviceIndex index) const override {
    device_handle(index);
    set_current_device(index);
  }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    const c10::DeviceIndex earlier = current_device();
    setCurrentDevice(index);
    return earlier;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return index < 0 || index >= device_count() ? current_device() : exchangeDevice(index);
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override { return default_generator(index); }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return at::make_generator<GeneratorState>(index < 0 ? current_device() : index);
  }
  at::Device getDeviceFromPtr(void* data) const override {
    bph_device* owner = nullptr;
    bph_buffer* buffer = nullptr;
    uint64_t offset = 0;
    call(bph_buffer_from_address, reinterpret_cast<uint64_t>(data), &owner, &buffer, &offset);
    for (c10::DeviceIndex i = 0; i < device_count(); ++i) {
      if (device_handle(i) == owner) return {c10::DeviceType::PrivateUse1, i};
    }
    raise(BP_INVALID_ARGUMENT, "the address belongs to a device that backplane_torch did not open");
  }
  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  at::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator(); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    const c10::DeviceGuard guard(storage.device());
    c10::DataPtr data = allocator().allocate(bytes);
    if (const size_t kept = std::min(bytes, storage.nbytes()); kept > 0) {
      const Memory from = memory_of(storage.data_ptr());
      call(bph_copy, current_stream_handle(storage.device().index()), memory_of(data).buffer, uint64_t{0}, from.buffer,
           from.offset, uint64_t{kept}, 0u);
    }
    storage.set_data_ptr_noswap(std::move(data));
    storage.set_nbytes(bytes);
  }
};

// These objects are never destroyed, because PyTorch uses them until the process exits.
[[maybe_unused]] const bool registered = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  c10::SetAllocator(c10::DeviceType::PrivateUse1, &allocator());
  at::setHostAllocator(c10::DeviceType::PrivateUse1, &pinned_allocator());
  return true;
}();

}  // namespace
}  // namespace backplane_torch
