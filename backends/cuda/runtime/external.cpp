// SPDX-License-Identifier: Apache-2.0
#include "runtime/external.hpp"

#include <fcntl.h>

#include <backplane/kit/shared_file.hpp>
#include <cstdlib>

#include "runtime/call.hpp"

namespace backplane::cuda {

using gpu_host::Handle;
using gpu_host::SharedMemory;

namespace {

constexpr uint32_t kMemory = BP_EXTERNAL_MEMORY_EXPORT | BP_EXTERNAL_MEMORY_IMPORT;
// Vulkan names these descriptors VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT and
// VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT. CUDA cannot create such semaphores.
constexpr kit::ExternalType kMemoryAndSemaphores[] = {{"opaque_fd", kMemory | BP_EXTERNAL_SEMAPHORE_IMPORT}};
constexpr kit::ExternalType kMemoryOnly[] = {{"opaque_fd", kMemory}};

constexpr auto kDescriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

CUmemAllocationProp properties_of(int ordinal) {
  CUmemAllocationProp out{};
  out.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  out.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  out.location.id = ordinal;
  out.requestedHandleTypes = kDescriptor;
  return out;
}

CUdeviceptr address_of(const SharedMemory& memory) { return reinterpret_cast<CUdeviceptr>(memory.address); }

// Converts the failure of an import. If a descriptor refers to another kind of object, drivers return many different
// codes.
kit::Status refused(const char* slot, const kit::Status& status) {
  const bool is_lost = status.code() == BP_DEVICE_LOST && status.vendor_code() != CUDA_ERROR_UNKNOWN;
  if (status.ok() || status.code() == BP_OUT_OF_MEMORY || is_lost) return status;
  return {BP_INVALID_ARGUMENT,
          kit::text(slot, ": the driver does not import the descriptor (", status.message(),
                    "); pass a descriptor and a size that were exported"),
          status.vendor_code()};
}

}  // namespace

kit::Result<bool> offers_external() {
  const char* const given = std::getenv(kExternalSetting);
  const std::string_view value = given == nullptr ? "" : given;
  if (value.empty() || value == "off") return false;
  if (value == "on") return true;
  return kit::invalid_argument(kExternalSetting, " is `", value, "`; set it to on or off");
}

std::span<const kit::ExternalType> External::types(Abilities device) const {
  if (!cu_.has_external || !device.shares_memory) return {};
  if (device.imports_semaphores) return kMemoryAndSemaphores;
  return kMemoryOnly;
}

kit::Result<uint64_t> External::granularity(int ordinal) const {
  const CUmemAllocationProp properties = properties_of(ordinal);
  std::size_t out = 0;
  kit::Status status = BP_CALL(cuMemGetAllocationGranularity, &out, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  return result_of<uint64_t>(std::move(status), out);
}

kit::Status External::map(int ordinal, SharedMemory& out) const {
  CUdeviceptr address = 0;
  kit::Status status = BP_CALL(cuMemAddressReserve, &address, out.bytes, 0, 0, 0);
  if (!status.ok()) return status;
  status = BP_CALL(cuMemMap, address, out.bytes, 0, out.object, 0);
  if (status.ok()) {
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = ordinal;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    status = BP_CALL(cuMemSetAccess, address, out.bytes, &access, 1);
    if (!status.ok()) (void)cu_.cuMemUnmap(address, out.bytes);
  }
  if (!status.ok()) (void)cu_.cuMemAddressFree(address, out.bytes);
  out.address = reinterpret_cast<std::byte*>(address);
  return status;
}

kit::Result<SharedMemory> External::allocate(int ordinal, uint64_t bytes) const {
  auto unit = granularity(ordinal);
  if (!unit.ok()) return unit.status();
  const CUmemAllocationProp properties = properties_of(ordinal);
  SharedMemory out;
  out.bytes = (bytes + unit.value() - 1) / unit.value() * unit.value();
  CUmemGenericAllocationHandle object = 0;
  kit::Status status = BP_CALL(cuMemCreate, &object, out.bytes, &properties, 0);
  if (!status.ok()) return status;
  out.object = object;
  status = map(ordinal, out);
  if (!status.ok()) (void)cu_.cuMemRelease(object);
  return result_of(std::move(status), out);
}

kit::Result<int> External::descriptor_of(const SharedMemory& memory) const {
  int fd = -1;
  kit::Status status = BP_CALL(cuMemExportToShareableHandle, &fd, memory.object, kDescriptor, 0);
  // The contract of bp.external requires FD_CLOEXEC. The driver need not set this flag.
  if (status.ok()) (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return result_of(std::move(status), fd);
}

kit::Result<SharedMemory> External::import_memory(int ordinal, int fd, uint64_t bytes) const {
  auto unit = granularity(ordinal);
  if (!unit.ok()) return unit.status();
  SharedMemory out;
  out.bytes = bytes;
  // The size of memory of cuMemCreate is a multiple of the granularity. Memory of Vulkan may have such a size, too.
  // Only import_foreign (cuImportExternalMemory) maps all memory of Vulkan.
  kit::Status status = bytes % unit.value() == 0 ? import_object(ordinal, fd, out) : kit::unsupported("");
  if (!status.ok() && status.code() != BP_OUT_OF_MEMORY) status = import_foreign(fd, out);
  return result_of(refused("buffer_import", status), out);
}

kit::Status External::import_object(int ordinal, int fd, SharedMemory& out) const {
  CUmemGenericAllocationHandle object = 0;
  kit::Status status =
      BP_CALL(cuMemImportFromShareableHandle, &object, reinterpret_cast<void*>(static_cast<intptr_t>(fd)), kDescriptor);
  if (!status.ok()) return status;
  out.origin = SharedMemory::Origin::kImported;
  out.object = object;
  status = map(ordinal, out);
  if (!status.ok()) (void)cu_.cuMemRelease(object);
  return status;
}

kit::Status External::import_foreign(int fd, SharedMemory& out) const {
  auto own = kit::duplicate_descriptor("buffer_import", fd);
  if (!own.ok()) return own.status();
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc{};
  desc.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  desc.handle.fd = own.value().get();
  desc.size = out.bytes;
  CUexternalMemory object = nullptr;
  kit::Status status = BP_CALL(cuImportExternalMemory, &object, &desc);
  if (!status.ok()) return status;
  (void)own.value().release();  // the driver owns the descriptor after a success
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC range{};
  range.size = out.bytes;
  CUdeviceptr address = 0;
  status = BP_CALL(cuExternalMemoryGetMappedBuffer, &address, object, &range);
  if (!status.ok()) (void)cu_.cuDestroyExternalMemory(object);
  out.origin = SharedMemory::Origin::kForeign;
  out.address = reinterpret_cast<std::byte*>(address);
  out.object = reinterpret_cast<uintptr_t>(object);
  return status;
}

kit::Status External::free(const SharedMemory& memory) const {
  const CUdeviceptr address = address_of(memory);
  if (memory.origin == SharedMemory::Origin::kForeign) {
    kit::Status status = BP_CALL(cuMemFree, address);
    if (status.ok()) status = BP_CALL(cuDestroyExternalMemory, reinterpret_cast<CUexternalMemory>(memory.object));
    return status;
  }
  kit::Status status = BP_CALL(cuMemUnmap, address, memory.bytes);
  if (status.ok()) status = BP_CALL(cuMemAddressFree, address, memory.bytes);
  if (status.ok()) status = BP_CALL(cuMemRelease, memory.object);
  return status;
}

kit::Result<Handle> External::import_semaphore(int fd) const {
  auto own = kit::duplicate_descriptor("semaphore_import", fd);
  if (!own.ok()) return own.status();
  CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc{};
  desc.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
  desc.handle.fd = own.value().get();
  CUexternalSemaphore semaphore = nullptr;
  kit::Status status = BP_CALL(cuImportExternalSemaphore, &semaphore, &desc);
  if (status.ok()) (void)own.value().release();  // the driver owns the descriptor after a success
  return result_of<Handle>(refused("semaphore_import", status), semaphore);
}

void External::destroy_semaphore(Handle semaphore) const {
  (void)cu_.cuDestroyExternalSemaphore(static_cast<CUexternalSemaphore>(semaphore));
}

kit::Status External::signal(Handle semaphore, uint64_t value, Handle stream) const {
  const auto given = static_cast<CUexternalSemaphore>(semaphore);
  CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS params{};
  params.params.fence.value = value;
  return BP_CALL(cuSignalExternalSemaphoresAsync, &given, &params, 1, static_cast<CUstream>(stream));
}

kit::Status External::wait(Handle semaphore, uint64_t value, Handle stream) const {
  const auto given = static_cast<CUexternalSemaphore>(semaphore);
  CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS params{};
  params.params.fence.value = value;
  return BP_CALL(cuWaitExternalSemaphoresAsync, &given, &params, 1, static_cast<CUstream>(stream));
}

}  // namespace backplane::cuda
