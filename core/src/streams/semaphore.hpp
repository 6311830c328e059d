// SPDX-License-Identifier: Apache-2.0
// A semaphore of the host API. Streams that use the plugin's semaphore keep it until they end.
#pragma once

#include "base/handle.hpp"
#include "loading/device.hpp"

namespace backplane::core {

// The plugin's semaphore. The device is open while a reference exists.
class PluginSemaphore final : public Object {
 public:
  explicit PluginSemaphore(const Device& device) noexcept : device_(device) {}
  ~PluginSemaphore() override;
  bp_semaphore* handle = nullptr;

 private:
  const Device& device_;
};

class Semaphore final : public Object {
 public:
  static constexpr HandleType kHandleType = HandleType::semaphore;

  // `create` and `import` implement bph_semaphore_create and bph_semaphore_import, and throw the
  // errors that the bph_ functions return.
  static Ref<Semaphore> create(Ref<Device> device, const char* type, uint64_t value);
  static Ref<Semaphore> import(Ref<Device> device, const bp_external_handle& handle);

  uint64_t public_handle = 0;

  bp_external_handle exported(const char* type) const;
  void signal(Stream* stream, uint64_t value);  // `stream` may be null
  void make_wait(Stream& stream, uint64_t value);

 private:
  explicit Semaphore(Ref<Device> device);
  // Enqueues `slot` on the stream.
  void enqueue(Stream& stream, const char* function, const char* name, decltype(bp_external_api::semaphore_signal) slot,
               uint64_t value);

  Ref<Device> device_;  // declared first, because the device closes last
  Ref<PluginSemaphore> semaphore_;
};

}  // namespace backplane::core
