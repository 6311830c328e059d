// SPDX-License-Identifier: Apache-2.0
#include "streams/semaphore.hpp"

#include "loading/external.hpp"
#include "streams/stream.hpp"

namespace backplane::core {

PluginSemaphore::~PluginSemaphore() {
  if (handle == nullptr || !device_.of_this_process()) return;
  const auto destroy = interface_of<bp_external_api>(device_).semaphore_destroy;
  if (destroy != nullptr) destroy(device_.handle, handle);
}

Semaphore::Semaphore(Ref<Device> device)
    : device_(std::move(device)), semaphore_(kAdopt, new PluginSemaphore(*device_)) {}

Ref<Semaphore> Semaphore::create(Ref<Device> device, const char* type, uint64_t value) {
  const Device& owner = *device;
  const auto slot =
      external_slot(owner, "bph_semaphore_create", "semaphore_create", &bp_external_api::semaphore_create);
  Ref<Semaphore> semaphore(kAdopt, new Semaphore(std::move(device)));
  bp_error error = fresh_error();
  bp_semaphore* made = nullptr;
  const bp_status status = slot(owner.handle, type, value, &made, &error);
  semaphore->semaphore_->handle = created(owner, "semaphore_create", status, error, made);
  return semaphore;
}

Ref<Semaphore> Semaphore::import(Ref<Device> device, const bp_external_handle& handle) {
  const Device& owner = *device;
  const auto slot =
      external_slot(owner, "bph_semaphore_import", "semaphore_import", &bp_external_api::semaphore_import);
  Ref<Semaphore> semaphore(kAdopt, new Semaphore(std::move(device)));
  bp_error error = fresh_error();
  bp_semaphore* made = nullptr;
  const bp_status status = slot(owner.handle, &handle, &made, &error);
  semaphore->semaphore_->handle = created(owner, "semaphore_import", status, error, made);
  return semaphore;
}

bp_external_handle Semaphore::exported(const char* type) const {
  const auto slot =
      external_slot(*device_, "bph_semaphore_export", "semaphore_export", &bp_external_api::semaphore_export);
  bp_external_handle handle = {};
  handle.struct_size = sizeof(handle);
  bp_error error = fresh_error();
  check(*device_, "semaphore_export", slot(device_->handle, semaphore_->handle, type, &handle, &error), error);
  return handle;
}

void Semaphore::enqueue(Stream& stream, const char* function, const char* name,
                        decltype(bp_external_api::semaphore_signal) slot, uint64_t value) {
  if (stream.device.get() != device_.get()) {
    throw Error(BP_INVALID_ARGUMENT, "{}: the semaphore is of {}, the stream of {}{}; import the semaphore there",
                function, device_->name, stream.device->name,
                stream.device->name == device_->name ? ", opened another time" : "");
  }
  const StreamLock lock(stream, function);
  stream.begin_call();
  stream.keep(semaphore_);
  bp_error error = fresh_error();
  const bp_status status = slot(device_->handle, stream.handle, semaphore_->handle, value, &error);
  stream.count_enqueue(status);
  check(*device_, name, status, error);
}

void Semaphore::signal(Stream* stream, uint64_t value) {
  constexpr const char* function = "bph_semaphore_signal";
  const auto slot = external_slot(*device_, function, "semaphore_signal", &bp_external_api::semaphore_signal);
  if (stream != nullptr) return enqueue(*stream, function, "semaphore_signal", slot, value);
  bp_error error = fresh_error();
  const bp_status status = slot(device_->handle, nullptr, semaphore_->handle, value, &error);
  check(*device_, "semaphore_signal", status, error);
}

void Semaphore::make_wait(Stream& stream, uint64_t value) {
  constexpr const char* function = "bph_semaphore_wait";
  const auto slot = external_slot(*device_, function, "semaphore_wait", &bp_external_api::semaphore_wait);
  enqueue(stream, function, "semaphore_wait", slot, value);
}

}  // namespace backplane::core
