// SPDX-License-Identifier: Apache-2.0
#include "runtime/context.hpp"

#include <cstdlib>

#include "driver_call.hpp"

namespace backplane::opencl {

namespace {

kit::Status no_memory(const bp_buffer_desc& desc, const char* call, cl_int code) {
  return {BP_OUT_OF_MEMORY,
          kit::text("opencl: ", call, " could not allocate ", desc.bytes, " bytes (code ", code,
                    "); free some memory and try again"),
          code};
}

}  // namespace

kit::Result<std::unique_ptr<Context>> Context::create(const PhysicalDevice& device) {
  auto api = Api::load();
  if (!api.ok()) return api.status();
  std::unique_ptr<Context> out(new Context(device, *api.value()));
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                              reinterpret_cast<cl_context_properties>(device.platform), 0};
  cl_int code = CL_SUCCESS;
  out->handle_ = out->api_.clCreateContext(properties, 1, &device.id, nullptr, nullptr, &code);
  if (kit::Status status = status_of(code, "clCreateContext"); !status.ok()) return status;
  return out;
}

Context::~Context() {
  if (handle_ != nullptr) api_.clReleaseContext(handle_);
}

kit::Result<simt::Buffer*> Context::allocate(const bp_buffer_desc& desc) {
  const simt::DriverCall call;
  if (!call) return simt::exiting("opencl");
  auto out = std::make_unique<Buffer>();
  if (desc.kind == BP_MEMORY_DEVICE) {
    if (desc.bytes > device_.max_buffer_bytes) {
      return kit::out_of_memory("opencl: a buffer of ", desc.bytes, " bytes exceeds the device's limit of ",
                                device_.max_buffer_bytes, "; divide it");
    }
    cl_int code = CL_SUCCESS;
    out->memory = api_.clCreateBuffer(handle_, CL_MEM_READ_WRITE, desc.bytes, nullptr, &code);
    if (out->memory == nullptr) return no_memory(desc, "clCreateBuffer", code);
  } else if (kit::Status status = allocate_addressed(desc, *out); !status.ok()) {
    return status;
  }
  return out.release();
}

kit::Status Context::allocate_addressed(const bp_buffer_desc& desc, Buffer& out) {
  const bool shared = desc.kind == BP_MEMORY_SHARED;
  const auto alignment = static_cast<cl_uint>(desc.alignment);
  cl_int code = CL_SUCCESS;
  void* address = nullptr;
  const char* call = "aligned_alloc";
  if (shared ? device_.usm_shared : device_.usm_host) {
    out.origin = Buffer::Origin::kUsm;
    call = shared ? "clSharedMemAllocINTEL" : "clHostMemAllocINTEL";
    address = shared ? extensions_.clSharedMemAllocINTEL(handle_, device_.id, nullptr, desc.bytes, alignment, &code)
                     : extensions_.clHostMemAllocINTEL(handle_, nullptr, desc.bytes, alignment, &code);
  } else if (device_.has_shared_memory()) {
    out.origin = Buffer::Origin::kSvm;
    call = "clSVMAlloc";
    address = api_.clSVMAlloc(handle_, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, desc.bytes, alignment);
  } else {
    out.origin = Buffer::Origin::kHost;
    const uint64_t rounded = (desc.bytes + alignment - 1) / alignment * alignment;
    address = rounded < desc.bytes ? nullptr : std::aligned_alloc(alignment, rounded);
  }
  if (address == nullptr) return no_memory(desc, call, code);
  out.address = static_cast<std::byte*>(address);
  return {};
}

kit::Result<simt::Buffer*> Context::import_memory(const bp_import_desc& desc) {
  if (desc.type != BP_IMPORT_HOST) {
    return kit::unsupported("import_memory: type ", desc.type, " is not taken, BP_IMPORT_HOST is; copy instead");
  }
  auto out = std::make_unique<Buffer>();
  out->address = reinterpret_cast<std::byte*>(desc.address);
  out->origin = Buffer::Origin::kHost;
  out->is_borrowed = true;
  return out.release();
}

void Context::free(simt::Buffer* given) {
  const std::unique_ptr<Buffer> buffer(buffer_of(given));
  const simt::DriverCall call;
  if (!call || buffer->is_borrowed) return;
  switch (buffer->origin) {
    case Buffer::Origin::kDriver:
      api_.clReleaseMemObject(buffer->memory);
      break;
    case Buffer::Origin::kUsm:
      extensions_.clMemBlockingFreeINTEL(handle_, buffer->address);
      break;
    case Buffer::Origin::kSvm:
      api_.clSVMFree(handle_, buffer->address);
      break;
    case Buffer::Origin::kHost:
      std::free(buffer->address);
      break;
  }
}

}  // namespace backplane::opencl
