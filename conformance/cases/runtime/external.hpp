// SPDX-License-Identifier: Apache-2.0
// Memory and semaphores that a device shares through bp.external.
#pragma once

#include <string>

#include "cases/runtime/native.hpp"
#include "harness/context.hpp"

namespace backplane::conformance {

inline constexpr const char* kExternalExtension = "EXTERNAL";
inline constexpr const char* kSemaphoreExtension = "EXTERNAL_SEMAPHORE";
inline constexpr uint32_t kExternalSince = BP_VERSION(0, 3);

// Returns the slots of bp.external. Ends the case as not claimed if the device lacks the interface.
bp_external_api external_of(Context& context, Device& device);
// Returns the types that the device offers, after a check that they are well formed.
std::vector<bp_external_type> types_of(Context& context, Device& device);
// Returns the first type with all `flags`. Fails the case if the device lacks a slot that these
// flags require. Ends the case as not claimed if there is no such type.
std::string type_with(Context& context, uint32_t flags);

// A handle that a device exported. The destructor closes the handle's file descriptor.
struct Exported {
  explicit Exported(const bp_external_handle& given) : handle(given) {}
  Exported(Exported&& other) noexcept : handle(other.handle) { other.handle.fd = -1; }
  Exported& operator=(Exported&&) = delete;
  ~Exported();
  bp_external_handle handle;
};
// Ends the case as not claimed if the exported handle has no file descriptor.
void need_descriptor(Context& context, const Exported& exported);

// Creates a buffer that can be exported as `type`. Ends the case as not claimed if the device
// refuses memory of this kind.
Buffer external_buffer(Context& context, Device& device, const std::string& type, uint64_t bytes,
                       uint32_t kind = BP_MEMORY_DEVICE);
// Exports a buffer. A failure fails the case.
Exported export_of(Context& context, const Buffer& buffer, const std::string& type);
// Imports memory. After a failure, checks that there is no buffer. After a success, checks that the memory kind is
// legal.
Wrapped<Buffer> try_import(Context& context, Device& device, const bp_external_handle* handle);
Buffer import_buffer(Context& context, Device& device, const bp_external_handle& handle);

// A semaphore of a device.
class Semaphore {
 public:
  Semaphore(Device& device, const bp_external_api& table, bp_semaphore* owned)
      : device_(&device), table_(table), handle_(owned) {}
  Semaphore(Semaphore&& other) noexcept
      : device_(other.device_), table_(other.table_), handle_(std::exchange(other.handle_, nullptr)) {}
  Semaphore& operator=(Semaphore&&) = delete;
  ~Semaphore();
  bp_semaphore* get() const { return handle_; }
  // Both functions enqueue the operation on the stream. If the slot fails, the case fails.
  void signal(Stream& stream, uint64_t value) const;
  void wait(Stream& stream, uint64_t value) const;
  // Raises the semaphore from the host, without a stream. Returns the slot's status, which is OK or
  // UNSUPPORTED.
  bp_status raise(uint64_t value) const;
  Exported exported(const std::string& type) const;

 private:
  Device* device_;
  bp_external_api table_;
  bp_semaphore* handle_;
};
// Creates a semaphore. Ends the case as not claimed if the device has no semaphores.
Semaphore semaphore_on(Context& context, Device& device, uint64_t value = 0);
Semaphore import_semaphore(Context& context, Device& device, const bp_external_handle& handle);
// Returns the external type of the semaphores that semaphore_on creates.
std::string semaphore_type(Context& context);

// Returns other_index() if any device may import memory of `kind` that the device exports. If the handles of this
// memory state a uuid, only the exporting device may import the memory. In this case, returns the index of the case's
// device.
uint32_t importer_index(Context& context, uint32_t kind);
// Returns the index of another device of the plugin, or of the same device if there is only one.
uint32_t other_index(Context& context);

}  // namespace backplane::conformance
