// SPDX-License-Identifier: Apache-2.0
// A context of one device, and the buffers that are allocated in it.
#pragma once

#include <memory>

#include "runtime/platform.hpp"

namespace backplane::opencl {

// Memory with a handle or with an address, never both. A buffer owns one reference to its handle.
struct Buffer : simt::Buffer {
  cl_mem memory = nullptr;
  enum class Origin { kDriver, kUsm, kSvm, kHost } origin = Origin::kDriver;
  bool is_borrowed = false;  // the caller frees the memory at the address
};
inline Buffer* buffer_of(simt::Buffer* buffer) { return static_cast<Buffer*>(buffer); }
inline const Buffer* buffer_of(const simt::Buffer* buffer) { return static_cast<const Buffer*>(buffer); }

class Context {
 public:
  static kit::Result<std::unique_ptr<Context>> create(const PhysicalDevice& device);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const PhysicalDevice& device() const { return device_; }
  const Api& api() const { return api_; }
  const Extensions& extensions() const { return extensions_; }
  cl_context handle() const { return handle_; }

  kit::Result<simt::Buffer*> allocate(const bp_buffer_desc& desc);
  kit::Result<simt::Buffer*> import_memory(const bp_import_desc& desc);
  void free(simt::Buffer* buffer);

 private:
  Context(const PhysicalDevice& device, const Api& api)
      : device_(device), api_(api), extensions_(Extensions::of(api, device.platform)) {}
  kit::Status allocate_addressed(const bp_buffer_desc& desc, Buffer& out);

  const PhysicalDevice& device_;
  const Api& api_;
  const Extensions extensions_;
  cl_context handle_ = nullptr;
};

}  // namespace backplane::opencl
