// SPDX-License-Identifier: Apache-2.0
// Memory of the CUDA test driver.
#include "gpu_host/test_driver/memory.hpp"
#include "call.hpp"
#include "gpu_host/test_driver/shared.hpp"

namespace backplane::cuda::test_driver {

namespace {

using gpu_host::test_driver::MemoryKind;
using gpu_host::test_driver::Pool;
using gpu_host::test_driver::violate;

CUresult allocate(const char* function, MemoryKind kind, uint64_t bytes, void* out) {
  return run(function, Needs::kUncapturedContext, [&](Call& call) {
    return gpu_host::test_driver::allocate(call.context(), kind, bytes, static_cast<void**>(out));
  });
}

}  // namespace

CUresult CUDAAPI entry_cuMemGetInfo(std::size_t* free, std::size_t* total) {
  return run("cuMemGetInfo", Needs::kContext, [&](Call& call) {
    *free = gpu_host::test_driver::free_bytes(call.context());
    *total = gpu_host::test_driver::total_bytes();
    return Result::kSuccess;
  });
}

CUresult CUDAAPI entry_cuMemAlloc(CUdeviceptr* out, std::size_t bytes) {
  return allocate("cuMemAlloc", MemoryKind::kDevice, bytes, out);
}

CUresult CUDAAPI entry_cuMemHostAlloc(void** out, std::size_t bytes, unsigned flags) {
  constexpr unsigned kKnown = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if ((flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  return allocate("cuMemHostAlloc", MemoryKind::kHost, bytes, out);
}

CUresult CUDAAPI entry_cuMemAllocManaged(CUdeviceptr* out, std::size_t bytes, unsigned flags) {
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  return allocate("cuMemAllocManaged", MemoryKind::kManaged, bytes, out);
}

CUresult CUDAAPI entry_cuMemFree(CUdeviceptr address) {
  return run("cuMemFree", Needs::kUncapturedContext, [&](Call& call) {
    void* const given = address_of(address);
    if (gpu_host::test_driver::is_foreign(given)) return gpu_host::test_driver::unmap_foreign(given);
    return gpu_host::test_driver::free_memory(call, given, {MemoryKind::kDevice, MemoryKind::kManaged});
  });
}

CUresult CUDAAPI entry_cuMemFreeHost(void* address) {
  return run("cuMemFreeHost", Needs::kUncapturedContext,
             [&](Call& call) { return gpu_host::test_driver::free_memory(call, address, {MemoryKind::kHost}); });
}

CUresult CUDAAPI entry_cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* properties) {
  return run("cuMemPoolCreate", Needs::kUncapturedContext, [&](Call&) {
    auto* const context = gpu_host::test_driver::context_of(properties->location.id);
    const bool is_known = properties->allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
                          properties->handleTypes == CU_MEM_HANDLE_TYPE_NONE &&
                          properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE && context != nullptr;
    if (!is_known) return violate(Result::kInvalidValue, "the test driver does not know these properties of a pool");
    return gpu_host::test_driver::create_pool(*context, reinterpret_cast<void**>(out));
  });
}

CUresult CUDAAPI entry_cuMemPoolDestroy(CUmemoryPool pool) {
  return run("cuMemPoolDestroy", Needs::kUncapturedContext,
             [&](Call&) { return gpu_host::test_driver::destroy_pool(pool); });
}

CUresult CUDAAPI entry_cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return run("cuMemPoolSetAttribute", Needs::kContext, [&](Call&) {
    Pool* const pool = gpu_host::test_driver::find_pool(handle);
    if (pool == nullptr) return Result::kInvalidValue;
    if (attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
      return violate(Result::kInvalidValue, "the test driver does not set this attribute of a pool");
    }
    pool->threshold = *static_cast<const cuuint64_t*>(value);
    return Result::kSuccess;
  });
}

CUresult CUDAAPI entry_cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* out) {
  return run("cuMemPoolGetAttribute", Needs::kContext, [&](Call&) {
    const Pool* const pool = gpu_host::test_driver::find_pool(handle);
    if (pool == nullptr) return Result::kInvalidValue;
    switch (attribute) {
      case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        *static_cast<cuuint64_t*>(out) = pool->reserved;
        return Result::kSuccess;
      case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *static_cast<cuuint64_t*>(out) = pool->used;
        return Result::kSuccess;
      default:
        return violate(Result::kInvalidValue, "the test driver does not know this attribute of a pool");
    }
  });
}

CUresult CUDAAPI entry_cuMemPoolTrimTo(CUmemoryPool pool, std::size_t kept_bytes) {
  return run("cuMemPoolTrimTo", Needs::kContext,
             [&](Call&) { return gpu_host::test_driver::trim_pool(pool, kept_bytes); });
}

CUresult CUDAAPI entry_cuMemAllocFromPoolAsync(CUdeviceptr* out, std::size_t bytes, CUmemoryPool pool,
                                               CUstream stream) {
  return run("cuMemAllocFromPoolAsync", Needs::kContext, [&](Call& call) {
    return gpu_host::test_driver::allocate_ordered(call, stream, pool, bytes, reinterpret_cast<void**>(out));
  });
}

CUresult CUDAAPI entry_cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return run("cuMemFreeAsync", Needs::kContext,
             [&](Call& call) { return gpu_host::test_driver::free_ordered(call, stream, address_of(address)); });
}

CUresult CUDAAPI entry_cuMemHostRegister(void* address, std::size_t bytes, unsigned flags) {
  constexpr unsigned kKnown = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
  return run("cuMemHostRegister", Needs::kUncapturedContext, [&](Call& call) {
    if ((flags & ~kKnown) != 0) return violate(Result::kInvalidValue, "the driver does not know the flags");
    return gpu_host::test_driver::register_host(call.context(), address, bytes);
  });
}

CUresult CUDAAPI entry_cuMemHostUnregister(void* address) {
  return run("cuMemHostUnregister", Needs::kUncapturedContext,
             [&](Call&) { return gpu_host::test_driver::unregister_host(address); });
}

CUresult CUDAAPI entry_cuPointerGetAttribute(void* out, CUpointer_attribute attribute, CUdeviceptr address) {
  return run("cuPointerGetAttribute", Needs::kContext, [&](Call&) {
    const auto* const found = gpu_host::test_driver::find_allocation(address_of(address));
    if (found == nullptr) return Result::kInvalidValue;
    const bool is_device = found->kind != MemoryKind::kHost && found->kind != MemoryKind::kRegistered;
    switch (attribute) {
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *static_cast<CUmemorytype*>(out) = is_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        return Result::kSuccess;
      case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *static_cast<unsigned*>(out) = found->kind == MemoryKind::kManaged;
        return Result::kSuccess;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *static_cast<int*>(out) = found->context->ordinal;
        return Result::kSuccess;
      default:
        return violate(Result::kInvalidValue, "the test driver does not know this attribute");
    }
  });
}

CUresult CUDAAPI entry_cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return run("cuMemcpyAsync", Needs::kContext, [&](Call& call) {
    return gpu_host::test_driver::copy(call, stream, address_of(to), address_of(from), bytes);
  });
}

}  // namespace backplane::cuda::test_driver
