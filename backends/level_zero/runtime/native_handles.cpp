// SPDX-License-Identifier: Apache-2.0
#include "runtime/native_handles.hpp"

#include "driver_call.hpp"

namespace backplane::level_zero {

namespace {

constexpr const char* kListType = "level_zero.immediate_list";
constexpr const char* kQueueType = "level_zero.command_queue";
constexpr const char* kAddressType = "level_zero.address";
constexpr const char* kHostType = "host.address";

uint64_t value_of(const void* handle) { return reinterpret_cast<uintptr_t>(handle); }

kit::Status find_memory(const Context& context, const bp_native_handle& handle, const std::byte* address,
                        uint32_t& kind) {
  const Api& ze = context.api();
  const PhysicalDevice& device = context.device();
  ze_memory_allocation_properties_t properties{};
  properties.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES;
  ze_device_handle_t owner = nullptr;
  kit::Status status = context.check(ze.zeMemGetAllocProperties(context.handle(), address, &properties, &owner),
                                     "zeMemGetAllocProperties");
  if (!status.ok()) return status;
  switch (properties.type) {
    case ZE_MEMORY_TYPE_DEVICE:
      kind = BP_MEMORY_DEVICE;
      break;
    case ZE_MEMORY_TYPE_HOST:
      kind = BP_MEMORY_HOST;
      break;
    case ZE_MEMORY_TYPE_SHARED:
      kind = BP_MEMORY_SHARED;
      break;
    default:
      return kit::invalid_argument(
          "buffer_wrap: the address is in no memory of the context that device_native returns; allocate it there");
  }
  if (kind != BP_MEMORY_HOST && owner != nullptr && owner != device.id) {
    return kit::unsupported("buffer_wrap: the memory belongs to another device than ", device.name,
                            "; wrap it there, or copy");
  }
  if ((device.memory_kinds() & 1u << kind) == 0) {
    return kit::unsupported("buffer_wrap: ", device.name,
                            " cannot access SHARED memory together with the host; pass other memory");
  }
  void* base = nullptr;
  std::size_t size = 0;
  status = context.check(ze.zeMemGetAddressRange(context.handle(), address, &base, &size), "zeMemGetAddressRange");
  if (!status.ok()) return status;
  const auto start = static_cast<uint64_t>(address - static_cast<const std::byte*>(base));
  if (handle.bytes <= size - start) return {};
  return kit::invalid_argument("buffer_wrap: ", handle.bytes, " bytes from byte ", start, " exceed the allocation of ",
                               size, " bytes; state a part of the allocation");
}

}  // namespace

kit::Result<bp_native_handle> handle_of_device(const Context& context, uint32_t index) {
  switch (index) {
    case 0:
      return kit::native_handle("level_zero.driver", value_of(context.device().driver));
    case 1:
      return kit::native_handle("level_zero.device", value_of(context.device().id));
    case 2:
      return kit::native_handle("level_zero.context", value_of(context.handle()));
    default:
      return kit::unsupported("device_native: index ", index, " is past the last handle, 2");
  }
}

kit::Result<bp_native_handle> handle_of(Queue& queue) {
  if (kit::Status status = queue.share(); !status.ok()) return status;
  const Lists& lists = queue.lists();
  if (lists.immediate_list() != nullptr) return kit::native_handle(kListType, value_of(lists.immediate_list()));
  return kit::native_handle(kQueueType, value_of(lists.command_queue()));
}

kit::Result<bp_native_handle> handle_of(const Buffer& buffer) {
  return kit::native_handle(buffer.is_system ? kHostType : kAddressType, value_of(buffer.address), BP_NATIVE_ADDRESS);
}

kit::Result<bp_native_handle> handle_of(const Mark& mark) {
  if (mark == nullptr) return simt::exiting("level_zero");
  return kit::native_handle("level_zero.event", value_of(mark->event));
}

kit::Result<std::unique_ptr<Queue>> wrap_queue(const Context& context, Kernels& kernels, Events& events,
                                               const bp_native_handle& handle) {
  const bool is_list = kit::type_of(handle) == kListType;
  if (!is_list && kit::type_of(handle) != kQueueType) {
    return kit::unsupported("the handle has the type \"", kit::type_of(handle), "\", this device takes ", kListType,
                            " and ", kQueueType);
  }
  if (handle.flags != 0) return kit::unsupported("stream_wrap: a queue is no address; pass the flags 0");
  if (handle.value == 0) return kit::invalid_argument("stream_wrap: the value is 0; pass a list or a queue");
  const auto value = static_cast<uintptr_t>(handle.value);
  return Queue::wrap(context, kernels, events,
                     is_list ? Lists::wrap(context, reinterpret_cast<ze_command_list_handle_t>(value))
                             : Lists::wrap(context, reinterpret_cast<ze_command_queue_handle_t>(value)));
}

kit::Result<simt::Buffer*> wrap_memory(const Context& context, const bp_native_handle& handle, uint32_t& kind) {
  const bool is_system = kit::type_of(handle) == kHostType && context.device().has_system_memory;
  if (!is_system && kit::type_of(handle) != kAddressType) {
    return kit::unsupported("the handle has the type \"", kit::type_of(handle), "\", this device takes ", kAddressType,
                            ", and ", kHostType, " if kernels can access all memory of the process");
  }
  if (handle.flags != BP_NATIVE_ADDRESS) {
    return kit::unsupported("buffer_wrap: the memory has an address; pass the flags BP_NATIVE_ADDRESS");
  }
  if (handle.value == 0) return kit::invalid_argument("buffer_wrap: the address is 0; pass the address of memory");
  const simt::DriverCall call;
  if (!call) return simt::exiting("level_zero");
  auto out = std::make_unique<Buffer>();
  out->address = reinterpret_cast<std::byte*>(static_cast<uintptr_t>(handle.value + handle.offset));
  out->is_borrowed = true;
  out->is_system = is_system;
  kind = BP_MEMORY_SHARED;
  kit::Status status = is_system ? kit::Status() : find_memory(context, handle, out->address, kind);
  if (!status.ok()) return status;
  return out.release();
}

}  // namespace backplane::level_zero
