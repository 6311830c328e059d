// SPDX-License-Identifier: Apache-2.0
// Memory and semaphores that the CUDA test driver shares with other code.
#include "call.hpp"
#include "gpu_host/test_driver/shared.hpp"

namespace backplane::cuda::test_driver {

namespace shared = gpu_host::test_driver;
using gpu_host::test_driver::violate;

namespace {

bool is_known(const CUmemAllocationProp* properties) {
  return properties->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         properties->requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
         properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
         shared::context_of(properties->location.id) != nullptr;
}
Result unknown_properties() {
  return violate(Result::kInvalidValue, "the test driver does not know these properties of memory");
}

}  // namespace

CUresult CUDAAPI entry_cuMemGetAllocationGranularity(std::size_t* out, const CUmemAllocationProp* properties,
                                                     CUmemAllocationGranularity_flags option) {
  return run("cuMemGetAllocationGranularity", Needs::kContext, [&](Call&) {
    if (!is_known(properties) || option != CU_MEM_ALLOC_GRANULARITY_MINIMUM) return unknown_properties();
    *out = shared::kSharedUnit;
    return Result::kSuccess;
  });
}

CUresult CUDAAPI entry_cuMemCreate(CUmemGenericAllocationHandle* out, std::size_t bytes,
                                   const CUmemAllocationProp* properties, unsigned long long flags) {
  return run("cuMemCreate", Needs::kUncapturedContext, [&](Call&) {
    if (!is_known(properties) || flags != 0) return unknown_properties();
    uint64_t made = 0;
    const Result result = shared::create_object(*shared::context_of(properties->location.id), bytes, made);
    *out = made;
    return result;
  });
}

CUresult CUDAAPI entry_cuMemRelease(CUmemGenericAllocationHandle object) {
  return run("cuMemRelease", Needs::kUncapturedContext, [&](Call&) { return shared::release_object(object); });
}

CUresult CUDAAPI entry_cuMemAddressReserve(CUdeviceptr* out, std::size_t bytes, std::size_t alignment,
                                           CUdeviceptr wanted, unsigned long long flags) {
  return run("cuMemAddressReserve", Needs::kContext, [&](Call&) {
    if (alignment != 0 || wanted != 0 || flags != 0) {
      return violate(Result::kInvalidValue, "the test driver reserves addresses without conditions");
    }
    void* made = nullptr;
    const Result result = shared::reserve(bytes, made);
    *out = reinterpret_cast<CUdeviceptr>(made);
    return result;
  });
}

CUresult CUDAAPI entry_cuMemAddressFree(CUdeviceptr address, std::size_t bytes) {
  return run("cuMemAddressFree", Needs::kContext, [&](Call&) { return shared::unreserve(address_of(address), bytes); });
}

CUresult CUDAAPI entry_cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                                CUmemGenericAllocationHandle object, unsigned long long flags) {
  return run("cuMemMap", Needs::kUncapturedContext, [&](Call& call) {
    if (offset != 0 || flags != 0) return violate(Result::kInvalidValue, "the driver maps whole objects");
    return shared::map_object(call.context(), address_of(address), bytes, object);
  });
}

CUresult CUDAAPI entry_cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  return run("cuMemUnmap", Needs::kUncapturedContext, [&](Call&) { return shared::unmap(address_of(address), bytes); });
}

CUresult CUDAAPI entry_cuMemSetAccess(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* access,
                                      std::size_t count) {
  return run("cuMemSetAccess", Needs::kUncapturedContext, [&](Call& call) {
    const bool is_own = count == 1 && access->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                        access->location.id == call.context().ordinal &&
                        access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (!is_own) return violate(Result::kInvalidValue, "the test driver permits only all access of the own device");
    return shared::permit(address_of(address), bytes);
  });
}

CUresult CUDAAPI entry_cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle object,
                                                    CUmemAllocationHandleType type, unsigned long long flags) {
  return run("cuMemExportToShareableHandle", Needs::kContext, [&](Call&) {
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || flags != 0) return Result::kInvalidValue;
    return shared::export_object(object, *static_cast<int*>(out));
  });
}

CUresult CUDAAPI entry_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* out, void* handle,
                                                      CUmemAllocationHandleType type) {
  return run("cuMemImportFromShareableHandle", Needs::kUncapturedContext, [&](Call&) {
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return Result::kInvalidValue;
    uint64_t made = 0;
    const Result result = shared::import_object(static_cast<int>(reinterpret_cast<intptr_t>(handle)), made);
    *out = made;
    return result;
  });
}

CUresult CUDAAPI entry_cuImportExternalMemory(CUexternalMemory* out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* desc) {
  return run("cuImportExternalMemory", Needs::kUncapturedContext, [&](Call&) {
    if (desc->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD || desc->flags != 0) return Result::kInvalidValue;
    void* made = nullptr;
    const Result result = shared::import_foreign(desc->handle.fd, desc->size, made);
    *out = static_cast<CUexternalMemory>(made);
    return result;
  });
}

CUresult CUDAAPI entry_cuExternalMemoryGetMappedBuffer(CUdeviceptr* out, CUexternalMemory memory,
                                                       const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* desc) {
  return run("cuExternalMemoryGetMappedBuffer", Needs::kUncapturedContext, [&](Call& call) {
    if (desc->offset != 0 || desc->flags != 0)
      return violate(Result::kInvalidValue, "the test driver maps whole memory");
    void* made = nullptr;
    const Result result = shared::map_foreign(call.context(), memory, desc->size, made);
    *out = reinterpret_cast<CUdeviceptr>(made);
    return result;
  });
}

CUresult CUDAAPI entry_cuDestroyExternalMemory(CUexternalMemory memory) {
  return run("cuDestroyExternalMemory", Needs::kUncapturedContext,
             [&](Call&) { return shared::destroy_foreign(memory); });
}

CUresult CUDAAPI entry_cuImportExternalSemaphore(CUexternalSemaphore* out,
                                                 const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC* desc) {
  return run("cuImportExternalSemaphore", Needs::kUncapturedContext, [&](Call&) {
    if (desc->type != CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD) return Result::kInvalidValue;
    void* made = nullptr;
    const Result result = shared::import_semaphore(desc->handle.fd, made);
    *out = static_cast<CUexternalSemaphore>(made);
    return result;
  });
}

CUresult CUDAAPI entry_cuDestroyExternalSemaphore(CUexternalSemaphore semaphore) {
  return run("cuDestroyExternalSemaphore", Needs::kUncapturedContext,
             [&](Call&) { return shared::destroy_semaphore(semaphore); });
}

CUresult CUDAAPI entry_cuSignalExternalSemaphoresAsync(const CUexternalSemaphore* semaphores,
                                                       const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS* params,
                                                       unsigned count, CUstream stream) {
  return run("cuSignalExternalSemaphoresAsync", Needs::kContext, [&](Call& call) {
    if (count != 1) return violate(Result::kInvalidValue, "the test driver signals one semaphore");
    return shared::signal_semaphore(call, stream, semaphores[0], params->params.fence.value);
  });
}

CUresult CUDAAPI entry_cuWaitExternalSemaphoresAsync(const CUexternalSemaphore* semaphores,
                                                     const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS* params, unsigned count,
                                                     CUstream stream) {
  return run("cuWaitExternalSemaphoresAsync", Needs::kContext, [&](Call& call) {
    if (count != 1) return violate(Result::kInvalidValue, "the test driver waits for one semaphore");
    return shared::await_semaphore(call, stream, semaphores[0], params->params.fence.value);
  });
}

}  // namespace backplane::cuda::test_driver
