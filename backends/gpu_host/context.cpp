// SPDX-License-Identifier: Apache-2.0
#include "gpu_host/context.hpp"

#include <backplane/kit/host_memory.hpp>

#include "gpu_host/fork.hpp"

namespace backplane::gpu_host {

namespace {

// While a pool has at most this many bytes, it keeps freed memory, so that the next buffer needs no mapping.
constexpr uint64_t kKeptBytes = 64u << 20;

}  // namespace

Scope::Scope(const Stack& stack, Handle context, Calls calls) : stack_(stack) {
  if (!call_) {
    status_ = simt::exiting(stack.plugin());
    return;
  }
  status_ = after_fork(stack.plugin());
  if (status_.ok()) status_ = stack.enter(context, calls, caller_);
  entered_ = status_.ok();
}

Scope::~Scope() {
  if (entered_) stack_.leave(caller_);
}

void Context::trim() const {
  const Scope scope(*this);
  if (scope) stack_.trim_pool(pool_);
}

kit::Result<std::unique_ptr<Context>> Context::create(const Stack& stack, const PhysicalDevice& device,
                                                      Registrations& registrations) {
  std::unique_ptr<Context> out(new Context(stack, device, registrations));
  auto handle = stack.retain_context(device.ordinal);
  if (!handle.ok()) return handle.status();
  out->handle_ = handle.value();
  if (!device.has_pools) return out;
  const Scope scope(*out);
  if (!scope) return scope.status();
  auto pool = stack.create_pool(device.ordinal, kKeptBytes);
  if (pool.status().code() == BP_UNSUPPORTED) return out;  // the same as for a device without pools
  if (!pool.ok()) return pool.status();
  out->pool_ = pool.value();
  auto stream = stack.create_stream(0);
  if (!stream.ok()) return stream.status();
  out->allocations_ = stream.value();
  return out;
}

Context::~Context() {
  if (pool_ == nullptr) return;
  const Scope scope(*this);
  if (!scope) return;
  if (allocations_ != nullptr) stack_.destroy_stream(allocations_);
  stack_.destroy_pool(pool_);
}

kit::Status Context::check(kit::Status status) const {
  if (status.code() == BP_DEVICE_LOST) {
    std::lock_guard lock(mutex_);
    if (loss_.ok()) loss_ = status;
    lost_.store(true, std::memory_order_release);
  }
  return status;
}

kit::Status Context::health() const {
  if (!lost_.load(std::memory_order_acquire)) return after_fork(stack_.plugin());
  std::lock_guard lock(mutex_);
  return loss_;
}

kit::Status Context::check_device_bytes(uint64_t bytes) const {
  if (bytes <= device_.total_bytes) return {};
  return kit::out_of_memory(stack_.plugin(), ": a buffer of ", bytes, " bytes exceeds the device's memory of ",
                            device_.total_bytes, "; divide it");
}

kit::Result<std::byte*> Context::allocate_device(uint64_t bytes) const {
  if (kit::Status status = check_device_bytes(bytes); !status.ok()) return status;
  auto made = stack_.allocate_device(bytes, pool_, allocations_);
  if (!made.ok() || allocations_ == nullptr) return made;
  // Waits for the allocation, because other streams may use the memory only after it has completed.
  if (kit::Status status = stack_.wait_stream(allocations_); !status.ok()) return status;
  return made;
}

// Limits the sizes of HOST and SHARED buffers. Without the limit, a driver may take all pages of the host, and shared
// memory may exceed all memory.
kit::Result<std::byte*> Context::allocate_kind(uint32_t kind, uint64_t bytes) const {
  if (kind == BP_MEMORY_DEVICE) return allocate_device(bytes);
  const bool is_host = kind == BP_MEMORY_HOST;
  const uint64_t most = kit::HostMemory::physical_bytes() + (is_host ? 0 : device_.total_bytes);
  if (bytes > most) {
    return kit::out_of_memory(stack_.plugin(), ": a buffer of ", bytes, " bytes exceeds the memory of the host",
                              is_host ? "" : " and the device", ", which is ", most, " bytes; divide it");
  }
  return is_host ? stack_.allocate_host(bytes) : stack_.allocate_shared(bytes);
}

kit::Result<simt::Buffer*> Context::allocate(const bp_buffer_desc& desc) const {
  static_assert(BP_MEMORY_DEVICE == static_cast<uint32_t>(Buffer::Source::kDevice) &&
                BP_MEMORY_HOST == static_cast<uint32_t>(Buffer::Source::kHost) &&
                BP_MEMORY_SHARED == static_cast<uint32_t>(Buffer::Source::kShared));
  const Scope scope(*this);
  if (!scope) return check(scope.status());
  auto out = std::make_unique<Buffer>();
  auto made = with_room([&] { return allocate_kind(desc.kind, desc.bytes); });
  if (!made.ok()) {
    const kit::Status status = check(made.status());
    return kit::Status{status.code(), kit::text(status.message(), " (", desc.bytes, " bytes were requested)"),
                       status.vendor_code()};
  }
  out->address = made.value();
  out->bytes = desc.bytes;
  out->source = static_cast<Buffer::Source>(desc.kind);
  return out.release();
}

kit::Result<simt::Buffer*> Context::import_memory(const bp_import_desc& desc, uint32_t& kind) const {
  const Scope scope(*this);
  if (!scope) return check(scope.status());
  auto out = std::make_unique<Buffer>();
  out->address = reinterpret_cast<std::byte*>(desc.address);
  out->bytes = desc.bytes;
  kind = desc.type == BP_IMPORT_DEVICE ? BP_MEMORY_DEVICE : BP_MEMORY_SHARED;
  kit::Status status;
  switch (desc.type) {
    case BP_IMPORT_HOST:
      status = import_host(desc, *out);
      break;
    case BP_IMPORT_DEVICE:
      status = import_device(desc, *out);
      break;
    default:
      status =
          kit::unsupported("import_memory: type ", desc.type, " is unknown; use BP_IMPORT_HOST or BP_IMPORT_DEVICE");
  }
  if (!status.ok()) return check(std::move(status));
  return out.release();
}

kit::Status Context::import_host(const bp_import_desc& desc, Buffer& out) const {
  using Owner = AddressKind::Owner;
  out.source = Buffer::Source::kRegistered;
  kit::Status status = registrations_.add(stack_, out.address, desc.bytes);
  if (status.ok() || status.code() == BP_DEVICE_LOST || status.code() == BP_OUT_OF_MEMORY) return status;
  // If another library has allocated or registered the memory with the driver, the plugin need not
  // register it.
  out.source = Buffer::Source::kForeign;
  const auto is_known = [&](const std::byte* address) {
    const Owner owner = stack_.kind_of(address).owner;
    return owner == Owner::kHost || owner == Owner::kShared;
  };
  if (is_known(out.address) && is_known(out.address + desc.bytes - 1)) return {};
  return kit::unsupported("import_memory: the driver does not register the ", desc.bytes,
                          " bytes of host memory: ", status.message(), "; copy instead");
}

kit::Status Context::import_device(const bp_import_desc& desc, Buffer& out) const {
  out.source = Buffer::Source::kForeign;
  for (const std::byte* address : {out.address, out.address + desc.bytes - 1}) {
    const AddressKind known = stack_.kind_of(address);
    if (known.owner == AddressKind::Owner::kDevice && known.ordinal == device_.ordinal) continue;
    return kit::unsupported("import_memory: the address is not in the memory of ", device_.name,
                            "; import memory of this device, or copy");
  }
  return {};
}

kit::Result<simt::Buffer*> Context::wrap_memory(std::byte* address, uint64_t bytes, uint32_t& kind) const {
  using Owner = AddressKind::Owner;
  const Scope scope(*this);
  if (!scope) return check(scope.status());
  const AddressKind first = stack_.kind_of(address);
  const AddressKind last = first.owner == Owner::kNone ? first : stack_.kind_of(address + bytes - 1);
  if (first.owner == Owner::kNone || last.owner != first.owner || last.ordinal != first.ordinal) {
    return kit::invalid_argument("buffer_wrap: the driver does not know the ", bytes,
                                 " bytes as one memory; state an allocation of the driver, or a part of it");
  }
  if (first.owner == Owner::kDevice && first.ordinal != device_.ordinal) {
    return kit::unsupported("buffer_wrap: the address is in the memory of device ", first.ordinal, ", not of ",
                            device_.name, ", which is device ", device_.ordinal, "; wrap it there, or copy");
  }
  if (first.owner == Owner::kShared && !device_.has_shared_memory) {
    return kit::unsupported("buffer_wrap: ", device_.name,
                            " cannot access managed memory together with the host; pass other memory");
  }
  auto out = std::make_unique<Buffer>();
  out->address = address;
  out->bytes = bytes;
  out->source = Buffer::Source::kForeign;
  kind = first.owner == Owner::kDevice ? BP_MEMORY_DEVICE
         : first.owner == Owner::kHost ? BP_MEMORY_HOST
                                       : BP_MEMORY_SHARED;
  return out.release();
}

void Context::free(simt::Buffer* given) const {
  const std::unique_ptr<Buffer> buffer(buffer_of(given));
  const Scope scope(*this);
  if (!scope) return;
  kit::Status status;
  switch (buffer->source) {
    case Buffer::Source::kDevice:
      status = stack_.free_device(buffer->address, allocations_);
      // Waits, because the next allocation reuses the memory only when the stream has reached this point. A pool also
      // returns memory to the device only at a wait.
      if (status.ok() && allocations_ != nullptr) status = stack_.wait_stream(allocations_);
      break;
    case Buffer::Source::kHost:
      status = stack_.free_host(buffer->address);
      break;
    case Buffer::Source::kShared:
      status = stack_.free_shared(buffer->address);
      break;
    case Buffer::Source::kRegistered:
      status = registrations_.remove(stack_, buffer->address);
      break;
    case Buffer::Source::kForeign:
      break;
    case Buffer::Source::kExternal:
      status = stack_.external()->free(*buffer->shared);
      break;
  }
  (void)check(std::move(status));
}

kit::Status Context::memory_info(uint32_t kind, bp_memory_info& out) const {
  if (kind != BP_MEMORY_DEVICE) {
    out.total_bytes = kit::HostMemory::physical_bytes();
    out.free_bytes = UINT64_MAX;
    return {};
  }
  const Scope scope(*this);
  if (!scope) return check(scope.status());
  kit::Status status = stack_.memory_info(out.free_bytes, out.total_bytes);
  if (!status.ok() || pool_ == nullptr) return check(std::move(status));
  auto unused = stack_.unused_bytes(pool_);
  if (!unused.ok()) return check(unused.status());
  // The limit is necessary because other threads and processes may allocate memory between the two queries.
  out.free_bytes = std::min(out.free_bytes + unused.value(), out.total_bytes);
  return {};
}

}  // namespace backplane::gpu_host
