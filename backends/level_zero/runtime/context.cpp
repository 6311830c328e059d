// SPDX-License-Identifier: Apache-2.0
#include "runtime/context.hpp"

#include <cstdlib>

#include <backplane/kit/host_memory.hpp>

#include "driver_call.hpp"

namespace backplane::level_zero {

namespace {

// Returns whether the user has enabled Sysman, which is possible only before the driver starts.
bool wants_sysman() {
  const char* setting = std::getenv("ZES_ENABLE_SYSMAN");
  return setting != nullptr && std::strcmp(setting, "1") == 0;
}

// Returns the free bytes of all memories of a device, or UINT64_MAX if Sysman does not report them.
uint64_t free_bytes(const Api& ze, ze_device_handle_t id) {
  if (!wants_sysman() || ze.zesDeviceEnumMemoryModules == nullptr || ze.zesMemoryGetState == nullptr) return UINT64_MAX;
  // If ZES_ENABLE_SYSMAN is 1, the handle of a device is also its handle in Sysman.
  auto* const device = reinterpret_cast<zes_device_handle_t>(id);
  uint32_t count = 0;
  if (ze.zesDeviceEnumMemoryModules(device, &count, nullptr) != ZE_RESULT_SUCCESS || count == 0) return UINT64_MAX;
  std::vector<zes_mem_handle_t> memories(count);
  if (ze.zesDeviceEnumMemoryModules(device, &count, memories.data()) != ZE_RESULT_SUCCESS) return UINT64_MAX;
  uint64_t out = 0;
  for (zes_mem_handle_t memory : memories) {
    zes_mem_state_t state{};
    state.stype = ZES_STRUCTURE_TYPE_MEM_STATE;
    if (ze.zesMemoryGetState(memory, &state) != ZE_RESULT_SUCCESS) return UINT64_MAX;
    out += state.free;
  }
  return out;
}

}  // namespace

kit::Result<std::unique_ptr<Context>> Context::create(const PhysicalDevice& device) {
  auto api = Api::load();
  if (!api.ok()) return api.status();
  std::unique_ptr<Context> out(new Context(device, *api.value()));
  const ze_context_desc_t desc{ZE_STRUCTURE_TYPE_CONTEXT_DESC, nullptr, 0};
  const ze_result_t code = out->api_.zeContextCreate(device.driver, &desc, &out->handle_);
  if (kit::Status status = status_of(code, "zeContextCreate"); !status.ok()) return status;
  return out;
}

Context::~Context() {
  if (handle_ != nullptr) api_.zeContextDestroy(handle_);
}

kit::Status Context::check(ze_result_t code, const char* call) const {
  kit::Status status = status_of(code, call);
  if (status.code() == BP_DEVICE_LOST) {
    std::lock_guard lock(mutex_);
    if (loss_.ok()) loss_ = status;
    lost_.store(true, std::memory_order_release);
  }
  return status;
}

kit::Status Context::health() const {
  if (!lost_.load(std::memory_order_acquire)) return {};
  std::lock_guard lock(mutex_);
  return loss_;
}

kit::Result<simt::Buffer*> Context::allocate(const bp_buffer_desc& desc) const {
  const simt::DriverCall call;
  if (!call) return simt::exiting("level_zero");
  ze_relaxed_allocation_limits_exp_desc_t relaxed{ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC, nullptr,
                                                  ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE};
  const void* const next = device_.relaxes_limits && desc.bytes > device_.limit_bytes ? &relaxed : nullptr;
  const ze_device_mem_alloc_desc_t device_desc{ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC, next, 0, 0};
  const ze_host_mem_alloc_desc_t host_desc{ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, next, 0};
  if (desc.kind == BP_MEMORY_DEVICE && desc.bytes > device_.max_buffer_bytes()) {
    return kit::out_of_memory("level_zero: a buffer of ", desc.bytes, " bytes exceeds the device's limit of ",
                              device_.max_buffer_bytes(), "; divide it");
  }
  auto out = std::make_unique<Buffer>();
  void* address = nullptr;
  kit::Status status;
  switch (desc.kind) {
    case BP_MEMORY_DEVICE:
      status = check(api_.zeMemAllocDevice(handle_, &device_desc, desc.bytes, desc.alignment, device_.id, &address),
                     "zeMemAllocDevice");
      break;
    case BP_MEMORY_HOST:
      status = check(api_.zeMemAllocHost(handle_, &host_desc, desc.bytes, desc.alignment, &address), "zeMemAllocHost");
      break;
    default:
      status = check(
          api_.zeMemAllocShared(handle_, &device_desc, &host_desc, desc.bytes, desc.alignment, device_.id, &address),
          "zeMemAllocShared");
  }
  if (!status.ok()) {
    return kit::Status{status.code(), kit::text(status.message(), " (", desc.bytes, " bytes were requested)"),
                       status.vendor_code()};
  }
  out->address = static_cast<std::byte*>(address);
  return out.release();
}

kit::Result<simt::Buffer*> Context::import_memory(const bp_import_desc& desc) const {
  if (desc.type != BP_IMPORT_HOST) {
    return kit::unsupported("import_memory: type ", desc.type,
                            " is not supported; import memory of the type BP_IMPORT_HOST, or copy");
  }
  auto out = std::make_unique<Buffer>();
  out->address = reinterpret_cast<std::byte*>(desc.address);
  out->is_borrowed = out->is_system = true;
  return out.release();
}

void Context::free(simt::Buffer* given) const {
  const std::unique_ptr<Buffer> buffer(buffer_of(given));
  const simt::DriverCall call;
  if (call && !buffer->is_borrowed) api_.zeMemFree(handle_, buffer->address);
}

kit::Status Context::memory_info(uint32_t kind, bp_memory_info& out) const {
  if (kind != BP_MEMORY_DEVICE) {
    out.total_bytes = kit::HostMemory::physical_bytes();
    out.free_bytes = UINT64_MAX;
    return {};
  }
  out.total_bytes = device_.total_bytes;
  out.free_bytes = device_.is_tile ? UINT64_MAX : free_bytes(api_, device_.id);
  return {};
}

}  // namespace backplane::level_zero
