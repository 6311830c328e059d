// SPDX-License-Identifier: Apache-2.0
// A context of one device, and the memory that is allocated in it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "runtime/platform.hpp"

namespace backplane::level_zero {

struct Buffer : simt::Buffer {
  bool is_borrowed = false;  // the caller frees the memory
  bool is_system = false;    // memory of the process, which the driver did not allocate
};
inline Buffer* buffer_of(simt::Buffer* buffer) { return static_cast<Buffer*>(buffer); }

class Context {
 public:
  static kit::Result<std::unique_ptr<Context>> create(const PhysicalDevice& device);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const PhysicalDevice& device() const { return device_; }
  const Api& api() const { return api_; }
  ze_context_handle_t handle() const { return handle_; }

  // Like status_of(). If the result is the first loss of the device, also stores it for health().
  kit::Status check(ze_result_t code, const char* call) const;
  // Returns the stored DEVICE_LOST status. Returns OK if the device is not lost.
  kit::Status health() const;

  kit::Result<simt::Buffer*> allocate(const bp_buffer_desc& desc) const;
  kit::Result<simt::Buffer*> import_memory(const bp_import_desc& desc) const;
  void free(simt::Buffer* buffer) const;
  kit::Status memory_info(uint32_t kind, bp_memory_info& out) const;

 private:
  Context(const PhysicalDevice& device, const Api& api) : device_(device), api_(api) {}

  const PhysicalDevice& device_;
  const Api& api_;
  ze_context_handle_t handle_ = nullptr;
  mutable std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;  // guards loss_
  mutable kit::Status loss_;
};

}  // namespace backplane::level_zero
