// SPDX-License-Identifier: Apache-2.0
// Buffers of memory that other devices, APIs and processes share.
#include "gpu_host/external.hpp"

#include <backplane/kit/shared_file.hpp>

#include "gpu_host/semaphore.hpp"

namespace backplane::gpu_host {

namespace {

simt::Buffer* buffer_over(const SharedMemory& memory, uint64_t offset, uint64_t bytes) {
  auto out = std::make_unique<Buffer>();
  out->address = memory.address + offset;
  out->bytes = bytes;
  out->source = Buffer::Source::kExternal;
  out->shared = std::make_unique<const SharedMemory>(memory);
  return out.release();
}

// Makes a handle with the device's uuid. An import duplicates `fd`, which the caller of the export owns.
bp_external_handle handle_of(const Context& context, int fd) {
  bp_external_handle out = kit::external_handle(context.external_type(), fd);
  std::memcpy(out.uuid, context.device().uuid, sizeof(out.uuid));
  return out;
}

}  // namespace

kit::Result<simt::Buffer*> Context::allocate_external(const bp_buffer_desc& desc, std::string_view type) const {
  kit::Status status = kit::check_external_type(type, external_type());
  if (status.ok() && desc.kind != BP_MEMORY_DEVICE) {
    status = kit::unsupported("buffer_create_external: memory of the type ", type, " has the kind DEVICE");
  }
  if (status.ok()) status = check_device_bytes(desc.bytes);
  if (!status.ok()) return status;
  const Scope scope(*this);
  if (!scope) return check(scope.status());
  auto made = with_room([&] { return stack_.external()->allocate(device_.ordinal, desc.bytes); });
  if (!made.ok()) return check(made.status());
  return buffer_over(made.value(), 0, desc.bytes);
}

kit::Result<bp_external_handle> Context::export_memory(const simt::Buffer* given, std::string_view type) const {
  const auto& buffer = static_cast<const Buffer&>(*given);
  if (kit::Status status = kit::check_external_type(type, external_type()); !status.ok()) return status;
  if (buffer.shared == nullptr || buffer.shared->origin != SharedMemory::Origin::kCreated) {
    return kit::unsupported("buffer_export: the buffer was not created for export; use buffer_create_external");
  }
  const Scope scope(*this);
  if (!scope) return check(scope.status());
  auto fd = stack_.external()->descriptor_of(*buffer.shared);
  if (!fd.ok()) return check(fd.status());
  bp_external_handle out = handle_of(*this, fd.value());
  out.object_bytes = buffer.shared->bytes;
  return out;
}

kit::Result<simt::Buffer*> Context::import_external(const bp_external_handle& handle, uint32_t& kind) const {
  kit::Status status = kit::check_external_handle(handle, external_type(), device_.uuid);
  if (status.ok() && handle.object_bytes > device_.total_bytes) {
    status = kit::invalid_argument("buffer_import: memory of ", handle.object_bytes,
                                   " bytes exceeds the device's memory of ", device_.total_bytes,
                                   "; pass object_bytes as exported");
  }
  if (!status.ok()) return status;
  auto fd = kit::duplicate_descriptor("buffer_import", handle.fd);
  if (!fd.ok()) return fd.status();
  const Scope scope(*this);
  if (!scope) return check(scope.status());
  auto made = with_room(
      [&] { return stack_.external()->import_memory(device_.ordinal, fd.value().get(), handle.object_bytes); });
  if (!made.ok()) return check(made.status());
  kind = BP_MEMORY_DEVICE;
  return buffer_over(made.value(), handle.offset, handle.bytes);
}

kit::Result<std::unique_ptr<Semaphore>> Semaphore::open(const Context& context, const bp_external_handle& handle) {
  kit::Status status = kit::check_external_handle(handle, context.external_type(), context.device().uuid);
  if (!status.ok()) return status;
  auto fd = kit::duplicate_descriptor("semaphore_import", handle.fd);
  if (!fd.ok()) return fd.status();
  const Scope scope(context);
  if (!scope) return context.check(scope.status());
  auto made = context.stack().external()->import_semaphore(fd.value().get());
  if (!made.ok()) return context.check(made.status());
  return std::make_unique<Semaphore>(context, made.value());
}

Semaphore::~Semaphore() {
  const Scope scope(context_);
  if (scope) context_.stack().external()->destroy_semaphore(handle_);
}

kit::Status Semaphore::signal(const Stack& stack, uint64_t value, Handle stream) {
  std::lock_guard lock(mutex_);
  if (value <= highest_) return {};
  kit::Status status = stack.external()->signal(handle_, value, stream);
  if (status.ok()) highest_ = value;
  return status;
}

}  // namespace backplane::gpu_host
