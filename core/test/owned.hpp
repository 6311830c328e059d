// SPDX-License-Identifier: Apache-2.0
// Owns a handle of the host API in a test, and releases the handle even if an assertion ends the test.
#pragma once

#include <backplane/backplane.h>

#include <utility>

namespace backplane::core::test {

inline void release_handle(bph_registry* handle) { bph_registry_release(handle); }
inline void release_handle(bph_plugin* handle) { bph_plugin_release(handle); }
inline void release_handle(bph_device* handle) { bph_device_release(handle); }
inline void release_handle(bph_stream* handle) { bph_stream_release(handle); }
inline void release_handle(bph_event* handle) { bph_event_release(handle); }
inline void release_handle(bph_buffer* handle) { bph_buffer_release(handle); }
inline void release_handle(bph_graph* handle) { bph_graph_release(handle); }

template <class Handle>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle* handle) : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~Owned() { release_handle(handle_); }

  void reset() { release_handle(std::exchange(handle_, nullptr)); }
  // Releases the handle, and returns the pointer that receives the next handle.
  Handle** out() {
    reset();
    return &handle_;
  }
  Handle* get() const { return handle_; }
  operator Handle*() const { return handle_; }

 private:
  Handle* handle_ = nullptr;
};

}  // namespace backplane::core::test
