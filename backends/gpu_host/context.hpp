// SPDX-License-Identifier: Apache-2.0
// The context of a device, and the memory that is allocated in it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "driver_call.hpp"
#include "gpu_host/external.hpp"
#include "gpu_host/registrations.hpp"

namespace backplane::gpu_host {

struct Buffer : simt::Buffer {
  enum class Source { kDevice, kHost, kShared, kRegistered, kForeign, kExternal } source = Source::kDevice;
  uint64_t bytes = 0;
  std::unique_ptr<const SharedMemory> shared{};  // not null if the source is kExternal
};
inline Buffer* buffer_of(simt::Buffer* buffer) { return static_cast<Buffer*>(buffer); }

class Context {
 public:
  // `device` and `registrations` must outlive the context.
  static kit::Result<std::unique_ptr<Context>> create(const Stack& stack, const PhysicalDevice& device,
                                                      Registrations& registrations);

  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const PhysicalDevice& device() const { return device_; }
  const Stack& stack() const { return stack_; }
  Handle handle() const { return handle_; }

  // Returns `status`. If `status` is the first DEVICE_LOST, also stores it for health().
  kit::Status check(kit::Status status) const;
  // Returns the stored DEVICE_LOST status, or the DEVICE_LOST status of after_fork() in a forked child.
  // Otherwise returns OK.
  kit::Status health() const;
  // Calls `allocate`, which returns a Status or a Result. After OUT_OF_MEMORY, returns the pool's unused memory to the
  // device and calls `allocate` again. The caller has entered the context.
  template <class Allocate>
  auto with_room(const Allocate& allocate) const {
    auto out = allocate();
    if (code_of(out) != BP_OUT_OF_MEMORY || pool_ == nullptr) return out;
    trim();
    return allocate();
  }

  kit::Result<simt::Buffer*> allocate(const bp_buffer_desc& desc) const;
  kit::Result<simt::Buffer*> import_memory(const bp_import_desc& desc, uint32_t& kind) const;
  // Wraps memory of the caller. The driver must report the same kind of memory for the first and the last address.
  kit::Result<simt::Buffer*> wrap_memory(std::byte* address, uint64_t bytes, uint32_t& kind) const;
  // These three functions need a device with an external type. The handles of this type have descriptors of DEVICE
  // memory.
  kit::Result<simt::Buffer*> allocate_external(const bp_buffer_desc& desc, std::string_view type) const;
  kit::Result<bp_external_handle> export_memory(const simt::Buffer* buffer, std::string_view type) const;
  kit::Result<simt::Buffer*> import_external(const bp_external_handle& handle, uint32_t& kind) const;
  void free(simt::Buffer* buffer) const;
  kit::Status memory_info(uint32_t kind, bp_memory_info& out) const;
  // The name of the device's external type. Call only if the device has one.
  std::string_view external_type() const { return device_.external_types[0].name; }

 private:
  Context(const Stack& stack, const PhysicalDevice& device, Registrations& registrations)
      : stack_(stack), device_(device), registrations_(registrations) {}
  static bp_status code_of(const kit::Status& status) { return status.code(); }
  template <class T>
  static bp_status code_of(const kit::Result<T>& result) {
    return result.status().code();
  }
  // Returns the pool's unused memory to the device.
  void trim() const;
  // Returns OUT_OF_MEMORY if a buffer of the kind DEVICE exceeds the memory of the device.
  kit::Status check_device_bytes(uint64_t bytes) const;
  kit::Result<std::byte*> allocate_device(uint64_t bytes) const;
  kit::Result<std::byte*> allocate_kind(uint32_t kind, uint64_t bytes) const;
  kit::Status import_host(const bp_import_desc& desc, Buffer& out) const;
  kit::Status import_device(const bp_import_desc& desc, Buffer& out) const;

  const Stack& stack_;
  const PhysicalDevice& device_;
  Registrations& registrations_;
  Handle handle_ = nullptr;
  Handle pool_ = nullptr;         // contains the DEVICE memory, or null if the device has no pools
  Handle allocations_ = nullptr;  // the stream that orders allocations from the pool, or null
  mutable std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;  // guards loss_
  mutable kit::Status loss_;
};

// The scope of driver calls. The context is the thread's current context until the scope ends. If
// the context could not be made current, status() returns the reason, and the thread must not call
// the driver.
class Scope {
 public:
  explicit Scope(const Context& context, Calls calls = Calls::kAny) : Scope(context.stack(), context.handle(), calls) {}
  Scope(const Stack& stack, Handle context, Calls calls = Calls::kAny);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  explicit operator bool() const { return entered_; }

  bool exiting() const { return !call_; }
  const kit::Status& status() const { return status_; }

 private:
  const simt::DriverCall call_;
  const Stack& stack_;
  Caller caller_;
  bool entered_ = false;
  kit::Status status_;
};

}  // namespace backplane::gpu_host
