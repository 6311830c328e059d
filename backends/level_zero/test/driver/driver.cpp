// SPDX-License-Identifier: Apache-2.0
// The device of the Level Zero test driver, its contexts and its memory.
#include <cstring>

#include "objects.hpp"

namespace backplane::level_zero::test_driver {

namespace {

std::mutex& living_mutex() {
  static auto* const one = new std::mutex;
  return *one;
}
std::unordered_map<const Object*, Object::Type>& living() {
  static auto* const all = new std::unordered_map<const Object*, Object::Type>;
  return *all;
}

// The device and its tiles, which are never destroyed.
struct Hardware {
  Object driver{Object::Type::kDevice};
  Device root{false, 0};
  std::vector<Device*> tiles;

  static Hardware& get() {
    static auto* const one = new Hardware;
    return *one;
  }

 private:
  Hardware() {
    Living::add(&root);
    const auto count = static_cast<uint32_t>(std::stoul(simt::test_driver::setting("TEST_DRIVER_TILES", "0")));
    for (uint32_t i = 0; i < count; ++i) {
      tiles.push_back(new Device(true, i));
      Living::add(tiles.back());
    }
  }
};

// Writes handles to `out`, and sets *count as the specification requires. If `out` is null or
// *count is 0, only sets *count.
template <class Handle, class T>
ze_result_t give(uint32_t* count, Handle* out, const std::vector<T*>& all) {
  const auto available = static_cast<uint32_t>(all.size());
  if (out == nullptr || *count == 0) {
    *count = available;
    return ZE_RESULT_SUCCESS;
  }
  *count = std::min(*count, available);
  for (uint32_t i = 0; i < *count; ++i) out[i] = reinterpret_cast<Handle>(static_cast<void*>(all[i]));
  return ZE_RESULT_SUCCESS;
}
// Like give(), for properties of which there is one element. `fill` writes this element.
template <class T, class Fill>
ze_result_t give_one(uint32_t* count, T* out, const Fill& fill) {
  if (out != nullptr && *count != 0) fill(*out);
  *count = 1;
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL init(ze_init_flags_t) {
  if (const uint32_t requested = simt::test_driver::requested_failure("zeInit"); requested != 0) {
    return static_cast<ze_result_t>(requested);
  }
  return Machine::get() == nullptr ? ZE_RESULT_ERROR_UNINITIALIZED : ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL driver_get(uint32_t* count, ze_driver_handle_t* out) {
  NEED(count)
  return give(count, out, std::vector<Object*>{&Hardware::get().driver});
}
ze_result_t ZE_APICALL driver_api_version(ze_driver_handle_t driver, ze_api_version_t* out) {
  ENTER(zeDriverGetApiVersion, driver)
  NEED(out)
  *out = ZE_API_VERSION_CURRENT;
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL driver_properties(ze_driver_handle_t driver, ze_driver_properties_t* out) {
  ENTER(zeDriverGetProperties, driver)
  NEED(out)
  out->driverVersion = 1;
  std::memset(&out->uuid, 0x5a, sizeof(out->uuid));
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL driver_extensions(ze_driver_handle_t driver, uint32_t* count,
                                         ze_driver_extension_properties_t* out) {
  ENTER(zeDriverGetExtensionProperties, driver)
  NEED(count)
  if (lacks("relaxed")) {
    *count = 0;
    return ZE_RESULT_SUCCESS;
  }
  return give_one(count, out, [](ze_driver_extension_properties_t& each) {
    std::strncpy(each.name, ZE_RELAXED_ALLOCATION_LIMITS_EXP_NAME, sizeof(each.name) - 1);
    each.version = ZE_RELAXED_ALLOCATION_LIMITS_EXP_VERSION_1_0;
  });
}

ze_result_t ZE_APICALL device_get(ze_driver_handle_t driver, uint32_t* count, ze_device_handle_t* out) {
  ENTER(zeDeviceGet, driver)
  NEED(count)
  return give(count, out, std::vector<Device*>{&Hardware::get().root});
}
ze_result_t ZE_APICALL device_tiles(ze_device_handle_t device, uint32_t* count, ze_device_handle_t* out) {
  ENTER(zeDeviceGetSubDevices, device)
  NEED(count)
  return give(count, out, object_of<Device>(device)->is_tile ? std::vector<Device*>{} : Hardware::get().tiles);
}

uint64_t limit_bytes() {
  const std::string limit = simt::test_driver::setting("TEST_DRIVER_LIMIT");
  return limit.empty() ? machine().info<cl_ulong>(CL_DEVICE_MAX_MEM_ALLOC_SIZE) : std::stoull(limit);
}

ze_result_t ZE_APICALL device_properties(ze_device_handle_t handle, ze_device_properties_t* out) {
  ENTER(zeDeviceGetProperties, handle)
  NEED(out)
  if (out->stype != ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2) return ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION;
  const Device& device = *object_of<Device>(handle);
  out->type = simt::test_driver::setting("TEST_DRIVER_TYPE", "cpu") == "gpu" ? ZE_DEVICE_TYPE_GPU : ZE_DEVICE_TYPE_CPU;
  out->vendorId = 0;
  out->deviceId = 0;
  out->flags = device.is_tile ? uint32_t{ZE_DEVICE_PROPERTY_FLAG_SUBDEVICE} : 0u;
  out->subdeviceId = device.index;
  out->coreClockRate = 1000;
  out->maxMemAllocSize = limit_bytes();
  out->maxHardwareContexts = 1;
  out->maxCommandQueuePriority = 0;
  out->numThreadsPerEU = 1;
  out->physicalEUSimdWidth = 8;
  out->numEUsPerSubslice = machine().info<cl_uint>(CL_DEVICE_MAX_COMPUTE_UNITS);
  out->numSubslicesPerSlice = 1;
  out->numSlices = 1;
  out->timerResolution = 1'000'000'000;
  out->timestampValidBits = 64;
  out->kernelTimestampValidBits = 32;
  std::memset(&out->uuid, 0, sizeof(out->uuid));
  std::memcpy(out->uuid.id, "test driver", 11);
  out->uuid.id[15] = static_cast<uint8_t>(device.is_tile ? 1 + device.index : 0);
  std::strncpy(out->name, "Backplane test device", sizeof(out->name) - 1);
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL device_compute(ze_device_handle_t handle, ze_device_compute_properties_t* out) {
  ENTER(zeDeviceGetComputeProperties, handle)
  NEED(out)
  if (out->stype != ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES) return ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION;
  const auto group = static_cast<uint32_t>(machine().info<std::size_t>(CL_DEVICE_MAX_WORK_GROUP_SIZE));
  out->maxTotalGroupSize = out->maxGroupSizeX = out->maxGroupSizeY = out->maxGroupSizeZ = group;
  out->maxGroupCountX = out->maxGroupCountY = out->maxGroupCountZ = UINT32_MAX;
  out->maxSharedLocalMemory = static_cast<uint32_t>(machine().info<cl_ulong>(CL_DEVICE_LOCAL_MEM_SIZE));
  out->numSubGroupSizes = 0;
  for (const std::size_t width : machine().widths()) {
    if (out->numSubGroupSizes < ZE_SUBGROUPSIZE_COUNT)
      out->subGroupSizes[out->numSubGroupSizes++] = static_cast<uint32_t>(width);
  }
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL device_module(ze_device_handle_t handle, ze_device_module_properties_t* out) {
  ENTER(zeDeviceGetModuleProperties, handle)
  NEED(out)
  if (out->stype != ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES) return ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION;
  const ze_device_fp_flags_t floats =
      ZE_DEVICE_FP_FLAG_DENORM | ZE_DEVICE_FP_FLAG_INF_NAN | ZE_DEVICE_FP_FLAG_ROUND_TO_NEAREST | ZE_DEVICE_FP_FLAG_FMA;
  out->spirvVersionSupported = ZE_MAKE_VERSION(1, 2);
  out->flags = 0;
  if (!lacks("f16")) out->flags |= ZE_DEVICE_MODULE_FLAG_FP16;
  if (!lacks("f64")) out->flags |= ZE_DEVICE_MODULE_FLAG_FP64;
  out->fp16flags = lacks("f16") ? 0 : floats;
  out->fp32flags = floats;
  out->fp64flags = lacks("f64") ? 0 : floats;
  out->maxArgumentsSize = 2048;
  out->printfBufferSize = 0;
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL device_queue_groups(ze_device_handle_t handle, uint32_t* count,
                                           ze_command_queue_group_properties_t* out) {
  ENTER(zeDeviceGetCommandQueueGroupProperties, handle)
  NEED(count)
  return give_one(count, out, [](ze_command_queue_group_properties_t& each) {
    each.flags = ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE | ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY;
    each.maxMemoryFillPatternSize = 16;
    each.numQueues = 1;
  });
}
ze_result_t ZE_APICALL device_memories(ze_device_handle_t handle, uint32_t* count, ze_device_memory_properties_t* out) {
  ENTER(zeDeviceGetMemoryProperties, handle)
  NEED(count)
  return give_one(count, out, [](ze_device_memory_properties_t& each) {
    each.flags = 0;
    each.maxClockRate = 1000;
    each.maxBusWidth = 64;
    each.totalSize = machine().info<cl_ulong>(CL_DEVICE_GLOBAL_MEM_SIZE);
    each.name[0] = '\0';
  });
}
ze_result_t ZE_APICALL device_access(ze_device_handle_t handle, ze_device_memory_access_properties_t* out) {
  ENTER(zeDeviceGetMemoryAccessProperties, handle)
  NEED(out)
  // OpenCL's bits have the same values as those of Level Zero.
  using Bits = cl_device_unified_shared_memory_capabilities_intel;
  const auto bits = [](cl_device_info name) { return static_cast<uint32_t>(machine().info<Bits>(name)); };
  out->hostAllocCapabilities = bits(CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL);
  out->deviceAllocCapabilities = bits(CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL);
  out->sharedSingleDeviceAllocCapabilities =
      lacks("shared") ? 0 : bits(CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL);
  out->sharedCrossDeviceAllocCapabilities = 0;
  out->sharedSystemAllocCapabilities = lacks("system") ? 0 : bits(CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL);
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL context_create(ze_driver_handle_t driver, const ze_context_desc_t* desc,
                                      ze_context_handle_t* out) {
  ENTER(zeContextCreate, driver)
  NEED(desc)
  NEED(out)
  *out = handle_of<Context, ze_context_handle_t>(new Context);
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL context_destroy(ze_context_handle_t handle) {
  ENTER(zeContextDestroy, handle)
  auto* context = object_of<Context>(handle);
  if (context->users != 0) return ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE;
  destroy(context);
  return ZE_RESULT_SUCCESS;
}

struct Memory {
  static ze_result_t allocate(Context* context, Machine::Kind kind, const void* next, std::size_t bytes,
                              std::size_t alignment, void** out) {
    NEED(out)
    if (bytes == 0) return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
    if ((alignment & (alignment - 1)) != 0) return ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT;
    const auto* relaxed = static_cast<const ze_relaxed_allocation_limits_exp_desc_t*>(next);
    if (relaxed != nullptr &&
        (lacks("relaxed") || relaxed->stype != ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC)) {
      violation("an allocation has a pNext that the driver does not know");
    }
    if (bytes > limit_bytes() && relaxed == nullptr) return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
    *out = machine().allocate(kind, bytes, alignment);
    if (*out == nullptr) {
      return kind == Machine::Kind::kHost ? ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY : ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    ++context->users;
    return ZE_RESULT_SUCCESS;
  }
};

ze_result_t ZE_APICALL allocate_device(ze_context_handle_t context, const ze_device_mem_alloc_desc_t* desc,
                                       std::size_t bytes, std::size_t alignment, ze_device_handle_t device,
                                       void** out) {
  ENTER(zeMemAllocDevice, context)
  NEED(desc)
  object_of<Device>(device);
  return Memory::allocate(object_of<Context>(context), Machine::Kind::kDevice, desc->pNext, bytes, alignment, out);
}
ze_result_t ZE_APICALL allocate_host(ze_context_handle_t context, const ze_host_mem_alloc_desc_t* desc,
                                     std::size_t bytes, std::size_t alignment, void** out) {
  ENTER(zeMemAllocHost, context)
  NEED(desc)
  return Memory::allocate(object_of<Context>(context), Machine::Kind::kHost, desc->pNext, bytes, alignment, out);
}
ze_result_t ZE_APICALL allocate_shared(ze_context_handle_t context, const ze_device_mem_alloc_desc_t* desc,
                                       const ze_host_mem_alloc_desc_t* host, std::size_t bytes, std::size_t alignment,
                                       ze_device_handle_t device, void** out) {
  ENTER(zeMemAllocShared, context)
  NEED(desc)
  NEED(host)
  object_of<Device>(device);
  if (lacks("shared")) return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
  return Memory::allocate(object_of<Context>(context), Machine::Kind::kShared, desc->pNext, bytes, alignment, out);
}
ze_result_t ZE_APICALL free_memory(ze_context_handle_t context, void* address) {
  ENTER(zeMemFree, context)
  NEED(address)
  auto* of = object_of<Context>(context);
  if (!machine().free(address)) violation("zeMemFree: the address is not that of an allocation");
  --of->users;
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL memory_properties(ze_context_handle_t context, const void* address,
                                         ze_memory_allocation_properties_t* out, ze_device_handle_t* device) {
  ENTER(zeMemGetAllocProperties, context)
  NEED(address)
  NEED(out)
  object_of<Context>(context);
  if (out->stype != ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES) return ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION;
  Machine::Allocation found{};
  const bool is_known = machine().find(address, found) != nullptr;
  out->type = !is_known                              ? ZE_MEMORY_TYPE_UNKNOWN
              : found.kind == Machine::Kind::kHost   ? ZE_MEMORY_TYPE_HOST
              : found.kind == Machine::Kind::kShared ? ZE_MEMORY_TYPE_SHARED
                                                     : ZE_MEMORY_TYPE_DEVICE;
  out->id = 0;
  out->pageSize = 4096;
  const bool is_on_device = is_known && found.kind != Machine::Kind::kHost;
  // All devices of the test driver share the memory. Allocations belong to the first device that the plugin offers.
  auto* const owner = Hardware::get().tiles.empty() ? &Hardware::get().root : Hardware::get().tiles.front();
  if (device != nullptr) {
    *device = is_on_device ? reinterpret_cast<ze_device_handle_t>(static_cast<void*>(owner)) : nullptr;
  }
  return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL memory_range(ze_context_handle_t context, const void* address, void** base, std::size_t* bytes) {
  ENTER(zeMemGetAddressRange, context)
  NEED(address)
  object_of<Context>(context);
  Machine::Allocation found{};
  void* const begin = machine().find(address, found);
  if (begin == nullptr) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  if (base != nullptr) *base = begin;
  if (bytes != nullptr) *bytes = found.bytes;
  return ZE_RESULT_SUCCESS;
}

}  // namespace

void Living::add(Object* object) {
  std::lock_guard lock(living_mutex());
  living()[object] = object->type;
}
void Living::remove(Object* object) {
  std::lock_guard lock(living_mutex());
  living().erase(object);
}
void Living::check(const Object* object, Object::Type type) {
  std::lock_guard lock(living_mutex());
  const auto found = living().find(object);
  if (found == living().end()) violation("a handle is used that was destroyed, or that never existed");
  if (found->second != type) violation("a handle of another type is used");
}

bool lacks(const char* word) {
  const std::string list = "," + simt::test_driver::setting("TEST_DRIVER_LACKS") + ",";
  return list.find("," + std::string(word) + ",") != std::string::npos;
}

Machine& machine() { return *Machine::get(); }

ze_result_t result_of(cl_int code) {
  switch (code) {
    case CL_SUCCESS:
      return ZE_RESULT_SUCCESS;
    case CL_OUT_OF_HOST_MEMORY:
      return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    case CL_OUT_OF_RESOURCES:
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
      return ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
    case CL_INVALID_ARG_SIZE:
      return ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE;
    case CL_INVALID_WORK_GROUP_SIZE:
      return ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION;
    default:
      return ZE_RESULT_ERROR_UNKNOWN;
  }
}

void fill(ze_global_dditable_t& out) { out.pfnInit = init; }
void fill(ze_driver_dditable_t& out) {
  out.pfnGet = driver_get;
  out.pfnGetApiVersion = driver_api_version;
  out.pfnGetProperties = driver_properties;
  out.pfnGetExtensionProperties = driver_extensions;
}
void fill(ze_device_dditable_t& out) {
  out.pfnGet = device_get;
  out.pfnGetSubDevices = device_tiles;
  out.pfnGetProperties = device_properties;
  out.pfnGetComputeProperties = device_compute;
  out.pfnGetModuleProperties = device_module;
  out.pfnGetCommandQueueGroupProperties = device_queue_groups;
  out.pfnGetMemoryProperties = device_memories;
  out.pfnGetMemoryAccessProperties = device_access;
}
void fill(ze_context_dditable_t& out) {
  out.pfnCreate = context_create;
  out.pfnDestroy = context_destroy;
}
void fill(ze_mem_dditable_t& out) {
  out.pfnAllocDevice = allocate_device;
  out.pfnAllocHost = allocate_host;
  out.pfnAllocShared = allocate_shared;
  out.pfnFree = free_memory;
  out.pfnGetAllocProperties = memory_properties;
  out.pfnGetAddressRange = memory_range;
}

}  // namespace backplane::level_zero::test_driver
