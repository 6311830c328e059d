// SPDX-License-Identifier: Apache-2.0
// Memory of the HIP test driver.
#include "gpu_host/test_driver/memory.hpp"
#include "call.hpp"

namespace backplane::hip::test_driver {

namespace {

using gpu_host::test_driver::MemoryKind;
using gpu_host::test_driver::Pool;
using gpu_host::test_driver::violate;

hipError_t allocate(const char* function, MemoryKind kind, uint64_t bytes, unsigned flags, unsigned known, void** out) {
  return run(function, Needs::kUncapturedContext, [&](Call& call) {
    if ((flags & ~known) != 0) return violate(Result::kInvalidValue, "the driver does not know the flags");
    return gpu_host::test_driver::allocate(call.context(), kind, bytes, out);
  });
}

// Returns the hipMemoryType of a kind. The numbers depend on the driver's version, because HIP 6 changed them.
int type_of(MemoryKind kind) {
  const bool is_version_6 = std::stoi(gpu_host::test_driver::setting("TEST_DRIVER_VERSION", "0")) >= 60000000;
  const bool is_device = kind == MemoryKind::kDevice || kind == MemoryKind::kManaged;
  return (is_version_6 ? 1 : 0) + (is_device ? 1 : 0);
}

}  // namespace

hipError_t entry_hipMemGetInfo(std::size_t* free, std::size_t* total) {
  return run("hipMemGetInfo", Needs::kContext, [&](Call& call) {
    *free = gpu_host::test_driver::free_bytes(call.context());
    *total = gpu_host::test_driver::total_bytes();
    return Result::kSuccess;
  });
}

hipError_t entry_hipMalloc(void** out, std::size_t bytes) {
  return allocate("hipMalloc", MemoryKind::kDevice, bytes, 0, 0, out);
}

hipError_t entry_hipHostMalloc(void** out, std::size_t bytes, unsigned flags) {
  constexpr unsigned kKnown = hipHostMallocPortable | hipHostMallocMapped | hipHostMallocWriteCombined;
  return allocate("hipHostMalloc", MemoryKind::kHost, bytes, flags, kKnown, out);
}

hipError_t entry_hipMallocManaged(void** out, std::size_t bytes, unsigned flags) {
  return allocate("hipMallocManaged", MemoryKind::kManaged, bytes, flags, hipMemAttachGlobal, out);
}

hipError_t entry_hipFree(void* address) {
  return run("hipFree", Needs::kUncapturedContext, [&](Call& call) {
    return gpu_host::test_driver::free_memory(call, address, {MemoryKind::kDevice, MemoryKind::kManaged});
  });
}

hipError_t entry_hipHostFree(void* address) {
  return run("hipHostFree", Needs::kUncapturedContext,
             [&](Call& call) { return gpu_host::test_driver::free_memory(call, address, {MemoryKind::kHost}); });
}

hipError_t entry_hipMemPoolCreate(hipMemPool_t* out, const hipMemPoolProps* properties) {
  return run("hipMemPoolCreate", Needs::kUncapturedContext, [&](Call&) {
    auto* const context = gpu_host::test_driver::context_of(properties->location.id);
    const bool is_known = properties->allocType == hipMemAllocationTypePinned &&
                          properties->handleTypes == hipMemHandleTypeNone &&
                          properties->location.type == hipMemLocationTypeDevice && context != nullptr;
    if (!is_known) return violate(Result::kInvalidValue, "the test driver does not know these properties of a pool");
    return gpu_host::test_driver::create_pool(*context, reinterpret_cast<void**>(out));
  });
}

hipError_t entry_hipMemPoolDestroy(hipMemPool_t pool) {
  return run("hipMemPoolDestroy", Needs::kUncapturedContext,
             [&](Call&) { return gpu_host::test_driver::destroy_pool(pool); });
}

hipError_t entry_hipMemPoolSetAttribute(hipMemPool_t handle, hipMemPoolAttr attribute, void* value) {
  return run("hipMemPoolSetAttribute", Needs::kContext, [&](Call&) {
    Pool* const pool = gpu_host::test_driver::find_pool(handle);
    if (pool == nullptr) return Result::kInvalidValue;
    if (attribute != hipMemPoolAttrReleaseThreshold) {
      return violate(Result::kInvalidValue, "the test driver does not set this attribute of a pool");
    }
    pool->threshold = *static_cast<const uint64_t*>(value);
    return Result::kSuccess;
  });
}

hipError_t entry_hipMemPoolGetAttribute(hipMemPool_t handle, hipMemPoolAttr attribute, void* out) {
  return run("hipMemPoolGetAttribute", Needs::kContext, [&](Call&) {
    const Pool* const pool = gpu_host::test_driver::find_pool(handle);
    if (pool == nullptr) return Result::kInvalidValue;
    switch (attribute) {
      case hipMemPoolAttrReservedMemCurrent:
        *static_cast<uint64_t*>(out) = pool->reserved;
        return Result::kSuccess;
      case hipMemPoolAttrUsedMemCurrent:
        *static_cast<uint64_t*>(out) = pool->used;
        return Result::kSuccess;
      default:
        return violate(Result::kInvalidValue, "the test driver does not know this attribute of a pool");
    }
  });
}

hipError_t entry_hipMemPoolTrimTo(hipMemPool_t pool, std::size_t kept_bytes) {
  return run("hipMemPoolTrimTo", Needs::kContext,
             [&](Call&) { return gpu_host::test_driver::trim_pool(pool, kept_bytes); });
}

hipError_t entry_hipMallocFromPoolAsync(void** out, std::size_t bytes, hipMemPool_t pool, hipStream_t stream) {
  return run("hipMallocFromPoolAsync", Needs::kContext,
             [&](Call& call) { return gpu_host::test_driver::allocate_ordered(call, stream, pool, bytes, out); });
}

hipError_t entry_hipFreeAsync(void* address, hipStream_t stream) {
  return run("hipFreeAsync", Needs::kContext,
             [&](Call& call) { return gpu_host::test_driver::free_ordered(call, stream, address); });
}

hipError_t entry_hipHostRegister(void* address, std::size_t bytes, unsigned flags) {
  return run("hipHostRegister", Needs::kUncapturedContext, [&](Call& call) {
    if ((flags & ~unsigned{hipHostRegisterPortable | hipHostRegisterMapped}) != 0) {
      return violate(Result::kInvalidValue, "the driver does not know the flags");
    }
    return gpu_host::test_driver::register_host(call.context(), address, bytes);
  });
}

hipError_t entry_hipHostUnregister(void* address) {
  return run("hipHostUnregister", Needs::kUncapturedContext,
             [&](Call&) { return gpu_host::test_driver::unregister_host(address); });
}

hipError_t entry_hipHostGetDevicePointer(void** out, void* address, unsigned flags) {
  return run("hipHostGetDevicePointer", Needs::kContext, [&](Call&) {
    if (flags != 0) return violate(Result::kInvalidValue, "flags must be 0");
    const auto* const found = gpu_host::test_driver::find_allocation(address);
    const bool is_host =
        found != nullptr && (found->kind == MemoryKind::kHost || found->kind == MemoryKind::kRegistered);
    if (!is_host) return violate(Result::kInvalidValue, "the address is not that of registered memory");
    *out = gpu_host::test_driver::lacks("addresses") ? static_cast<std::byte*>(address) + (uint64_t{1} << 40) : address;
    return Result::kSuccess;
  });
}

hipError_t entry_hipPointerGetAttribute(void* out, hipPointer_attribute attribute, hipDeviceptr_t address) {
  return run("hipPointerGetAttribute", Needs::kContext, [&](Call&) {
    const auto* const found = gpu_host::test_driver::find_allocation(address);
    if (found == nullptr) return Result::kInvalidValue;
    switch (attribute) {
      case HIP_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *static_cast<int*>(out) = type_of(found->kind);
        return Result::kSuccess;
      case HIP_POINTER_ATTRIBUTE_IS_MANAGED:
        *static_cast<unsigned*>(out) = found->kind == MemoryKind::kManaged;
        return Result::kSuccess;
      case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *static_cast<int*>(out) = found->context->ordinal;
        return Result::kSuccess;
      default:
        return violate(Result::kInvalidValue, "the test driver does not know this attribute");
    }
  });
}

hipError_t entry_hipMemcpyAsync(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind, hipStream_t stream) {
  return run("hipMemcpyAsync", Needs::kContext, [&](Call& call) {
    if (kind != hipMemcpyDefault) {
      return violate(Result::kInvalidValue, "the test driver derives the direction of a copy from its addresses");
    }
    return gpu_host::test_driver::copy(call, stream, to, from, bytes);
  });
}

}  // namespace backplane::hip::test_driver
