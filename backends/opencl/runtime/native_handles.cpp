// SPDX-License-Identifier: Apache-2.0
#include "runtime/native_handles.hpp"

#include <span>

namespace backplane::opencl {

namespace {

constexpr const char* kQueueType = "opencl.command_queue";
constexpr const char* kMemType = "opencl.mem";
constexpr const char* kUsmType = "opencl.usm";
constexpr const char* kSvmType = "opencl.svm";
constexpr const char* kHostType = "host.address";

uint64_t value_of(const void* handle) { return reinterpret_cast<uintptr_t>(handle); }
template <class T>
T pointer_of(uint64_t value) {
  return reinterpret_cast<T>(static_cast<uintptr_t>(value));
}

kit::Status null_handle(const bp_native_handle& handle) {
  return kit::invalid_argument("opencl: the handle of type ", kit::type_of(handle),
                               " has the value 0; pass an object of the driver");
}

// Reads one property of an object. `get` calls the driver with the property's name.
template <class T, class Get, class Name>
kit::Status read(const Get& get, Name name, const char* call, T& out) {
  const auto bytes = std::as_writable_bytes(std::span(&out, 1));
  const cl_int code = get(name, bytes.size(), bytes.data());
  if (code == CL_SUCCESS) return {};
  kit::Status status = status_of(code, call);
  if (status.code() != BP_INTERNAL) return status;
  return {BP_INVALID_ARGUMENT, kit::text(status.message(), "; pass an object that exists"), status.vendor_code()};
}

kit::Status check_queue(const Context& context, cl_command_queue queue) {
  cl_context owner = nullptr;
  cl_device_id device = nullptr;
  cl_command_queue_properties properties = 0;
  const auto get = [&](cl_command_queue_info name, std::size_t bytes, void* out) {
    return context.api().clGetCommandQueueInfo(queue, name, bytes, out, nullptr);
  };
  const char* const call = "clGetCommandQueueInfo";
  kit::Status status = read(get, CL_QUEUE_CONTEXT, call, owner);
  if (status.ok()) status = read(get, CL_QUEUE_DEVICE, call, device);
  if (status.ok()) status = read(get, CL_QUEUE_PROPERTIES, call, properties);
  if (!status.ok()) return status;
  if (owner != context.handle() || device != context.device().id) {
    return kit::unsupported("opencl: the queue belongs to another ", owner != context.handle() ? "context" : "device",
                            "; create it in the context and for the device that device_native returns");
  }
  if ((properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0) {
    return kit::unsupported("opencl: the queue executes commands out of order; create an in-order queue");
  }
  return {};
}

// Returns INVALID_ARGUMENT if the range of a handle, which begins at `offset`, exceeds an object of
// `size` bytes.
kit::Status check_range(const bp_native_handle& handle, uint64_t offset, uint64_t size) {
  if (offset <= size && handle.bytes <= size - offset) return {};
  return kit::invalid_argument("opencl: ", handle.bytes, " bytes from byte ", offset, " exceed the object of ", size,
                               " bytes; state a part of the object");
}

kit::Status check_memory_flags(const Context& context, cl_mem_flags flags, const void* host_address,
                               std::size_t offset) {
  constexpr cl_mem_flags kLimits =
      CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS;
  if ((flags & kLimits) != 0) {
    return kit::unsupported("opencl: the flags ", flags & kLimits,
                            " of the buffer limit its use; create it with CL_MEM_READ_WRITE alone");
  }
  const uint64_t alignment = context.device().alignment;
  const bool is_aligned = (flags & CL_MEM_USE_HOST_PTR) == 0 || value_of(host_address) % alignment == 0;
  if (is_aligned && offset % alignment == 0) return {};
  return kit::unsupported("opencl: the buffer does not begin at a multiple of ", alignment,
                          " bytes; align the host memory or the sub-buffer that it is made of");
}

kit::Status wrap_mem(const Context& context, const bp_native_handle& handle, Buffer& out) {
  const auto memory = pointer_of<cl_mem>(handle.value);
  cl_mem_object_type type = 0;
  cl_context owner = nullptr;
  cl_mem_flags flags = 0;
  std::size_t size = 0, start = 0;
  void* host_address = nullptr;
  const auto get = [&](cl_mem_info name, std::size_t bytes, void* to) {
    return context.api().clGetMemObjectInfo(memory, name, bytes, to, nullptr);
  };
  const char* const call = "clGetMemObjectInfo";
  kit::Status status = read(get, CL_MEM_TYPE, call, type);
  if (status.ok()) status = read(get, CL_MEM_CONTEXT, call, owner);
  if (status.ok()) status = read(get, CL_MEM_FLAGS, call, flags);
  if (status.ok()) status = read(get, CL_MEM_SIZE, call, size);
  if (status.ok()) status = read(get, CL_MEM_OFFSET, call, start);
  if (status.ok()) status = read(get, CL_MEM_HOST_PTR, call, host_address);
  if (!status.ok()) return status;
  if (type != CL_MEM_OBJECT_BUFFER) return kit::unsupported("opencl: the cl_mem is not a buffer; pass a buffer");
  if (owner != context.handle()) {
    return kit::unsupported(
        "opencl: the buffer belongs to another context; create it in the context that device_native returns");
  }
  status = check_range(handle, handle.offset, size);
  if (status.ok()) status = check_memory_flags(context, flags, host_address, start);
  if (!status.ok()) return status;
  out.memory = memory;
  out.offset = handle.offset;
  return status_of(context.api().clRetainMemObject(memory), "clRetainMemObject");
}

kit::Status wrap_usm(const Context& context, const bp_native_handle& handle, Buffer& out, uint32_t& kind) {
  if (context.extensions().clGetMemAllocInfoINTEL == nullptr) {
    return kit::unsupported("opencl: the driver has no USM; pass a cl_mem");
  }
  const auto* const address = pointer_of<const std::byte*>(handle.value + handle.offset);
  cl_unified_shared_memory_type_intel type = CL_MEM_TYPE_UNKNOWN_INTEL;
  const std::byte* base = nullptr;
  std::size_t size = 0;
  const auto get = [&](cl_mem_info_intel name, std::size_t bytes, void* to) {
    return context.extensions().clGetMemAllocInfoINTEL(context.handle(), address, name, bytes, to, nullptr);
  };
  const char* const call = "clGetMemAllocInfoINTEL";
  kit::Status status = read(get, CL_MEM_ALLOC_TYPE_INTEL, call, type);
  if (status.ok()) status = read(get, CL_MEM_ALLOC_BASE_PTR_INTEL, call, base);
  if (status.ok()) status = read(get, CL_MEM_ALLOC_SIZE_INTEL, call, size);
  if (!status.ok()) return status;
  if (type == CL_MEM_TYPE_UNKNOWN_INTEL) {
    return kit::invalid_argument("opencl: the address is in no USM of the context that device_native returns");
  }
  const bool is_usable = type == CL_MEM_TYPE_HOST_INTEL
                             ? context.device().usm_host
                             : type == CL_MEM_TYPE_SHARED_INTEL && context.device().usm_shared;
  if (!is_usable) {
    return kit::unsupported("opencl: the USM is not of a type that can be copied to a cl_mem and that kernels may ",
                            "access concurrently with the host; pass a cl_mem or USM host memory");
  }
  kind = type == CL_MEM_TYPE_HOST_INTEL ? BP_MEMORY_HOST : BP_MEMORY_SHARED;
  out.origin = Buffer::Origin::kUsm;
  return check_range(handle, static_cast<uint64_t>(address - base), size);
}

}  // namespace

kit::Result<bp_native_handle> handle_of_device(const Context& context, uint32_t index) {
  switch (index) {
    case 0:
      return kit::native_handle("opencl.platform", value_of(context.device().platform));
    case 1:
      return kit::native_handle("opencl.device", value_of(context.device().id));
    case 2:
      return kit::native_handle("opencl.context", value_of(context.handle()));
    default:
      return kit::unsupported("device_native: index ", index, " is past the last handle, 2");
  }
}

kit::Result<bp_native_handle> handle_of(Queue& queue) {
  if (kit::Status status = queue.flush(); !status.ok()) return status;
  return kit::native_handle(kQueueType, value_of(queue.handle()));
}

kit::Result<bp_native_handle> handle_of(const Buffer& buffer) {
  if (buffer.memory != nullptr) {
    bp_native_handle out = kit::native_handle(kMemType, value_of(buffer.memory));
    out.offset = buffer.offset;
    return out;
  }
  const char* const type = buffer.origin == Buffer::Origin::kUsm   ? kUsmType
                           : buffer.origin == Buffer::Origin::kSvm ? kSvmType
                                                                   : kHostType;
  return kit::native_handle(type, value_of(buffer.address), BP_NATIVE_ADDRESS);
}

kit::Result<bp_native_handle> handle_of(const Event& event) {
  if (event.handle() == nullptr) return simt::exiting("opencl");
  return kit::native_handle("opencl.event", value_of(event.handle()));
}

kit::Result<std::unique_ptr<Queue>> wrap_queue(const Context& context, Kernels& kernels,
                                               const bp_native_handle& handle) {
  if (kit::Status status = kit::check_native_type(handle, kQueueType); !status.ok()) return status;
  if (handle.flags != 0) return kit::unsupported("opencl: a queue is no address; pass the flags 0");
  if (handle.value == 0) return null_handle(handle);
  const simt::DriverCall call;
  if (!call) return simt::exiting("opencl");
  const auto queue = pointer_of<cl_command_queue>(handle.value);
  kit::Status status = check_queue(context, queue);
  if (status.ok()) status = status_of(context.api().clRetainCommandQueue(queue), "clRetainCommandQueue");
  if (!status.ok()) return status;
  return Queue::wrap(context, kernels, queue);
}

kit::Result<simt::Buffer*> wrap_memory(const Context& context, const bp_native_handle& handle, uint32_t& kind) {
  const std::string_view type = kit::type_of(handle);
  const PhysicalDevice& device = context.device();
  const bool is_mem = type == kMemType, is_usm = type == kUsmType;
  const bool is_svm = type == kSvmType && !device.usm_shared && device.has_shared_memory();
  if (!is_mem && !is_usm && !is_svm && type != kHostType) {
    return kit::unsupported("opencl: the handle has the type \"", type, "\", this device takes ", kMemType, ", ",
                            kUsmType, " if it has USM, ", kSvmType, " if it has only SVM, and ", kHostType);
  }
  if (((handle.flags & BP_NATIVE_ADDRESS) == 0) != is_mem) {
    return kit::unsupported("opencl: a handle of type ", type, is_mem ? " is no" : " is an",
                            " address; correct BP_NATIVE_ADDRESS in its flags");
  }
  if (handle.value == 0) return null_handle(handle);
  const simt::DriverCall call;
  if (!call) return simt::exiting("opencl");
  auto out = std::make_unique<Buffer>();
  kit::Status status;
  if (is_mem) {
    kind = BP_MEMORY_DEVICE;
    status = wrap_mem(context, handle, *out);
  } else {
    out->address = pointer_of<std::byte*>(handle.value + handle.offset);
    out->is_borrowed = true;
    if (is_usm) {
      status = wrap_usm(context, handle, *out, kind);
    } else {
      out->origin = is_svm ? Buffer::Origin::kSvm : Buffer::Origin::kHost;
      kind = is_svm || device.imports() ? BP_MEMORY_SHARED : BP_MEMORY_HOST;
    }
  }
  if (!status.ok()) return status;
  return out.release();
}

}  // namespace backplane::opencl
