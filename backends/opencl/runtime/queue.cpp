// SPDX-License-Identifier: Apache-2.0
#include "runtime/queue.hpp"

namespace backplane::opencl {

kit::Result<std::unique_ptr<Queue>> Queue::create(const Context& context, Kernels& kernels) {
  std::unique_ptr<Queue> out(new Queue(context, kernels));
  const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
  cl_int code = CL_SUCCESS;
  out->handle_ =
      context.api().clCreateCommandQueueWithProperties(context.handle(), context.device().id, properties, &code);
  if (kit::Status status = status_of(code, "clCreateCommandQueueWithProperties"); !status.ok()) return status;
  return out;
}

Queue::~Queue() {
  const simt::DriverCall call;
  if (!call) return;
  const Api& cl = context_.api();
  for (const Kernel& object : objects_) {
    if (object.handle != nullptr) cl.clReleaseKernel(object.handle);
  }
  if (handle_ != nullptr) cl.clReleaseCommandQueue(handle_);
}

// While the process exits, commands have no effect, and marks never complete.
kit::Result<Event> Queue::mark() {
  const simt::DriverCall call;
  if (!call) return Event();
  cl_event event = nullptr;
  cl_int code = context_.api().clEnqueueMarkerWithWaitList(handle_, 0, nullptr, &event);
  if (kit::Status status = status_of(code, "clEnqueueMarkerWithWaitList"); !status.ok()) return status;
  Event out(context_.api(), event);
  if (kit::Status status = status_of(context_.api().clFlush(handle_), "clFlush"); !status.ok()) return status;
  return out;
}

kit::Status Queue::wait_for(const Event& event) {
  const simt::DriverCall call;
  if (!call) return {};
  const cl_event handle = event.handle();
  return status_of(context_.api().clEnqueueBarrierWithWaitList(handle_, 1, &handle, nullptr),
                   "clEnqueueBarrierWithWaitList");
}

kit::Status Queue::copy(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                        uint64_t bytes) {
  const simt::DriverCall call;
  if (!call) return {};
  const Api& cl = context_.api();
  if (dst.memory != nullptr && src.memory != nullptr) {
    return status_of(
        cl.clEnqueueCopyBuffer(handle_, src.memory, dst.memory, src_offset, dst_offset, bytes, 0, nullptr, nullptr),
        "clEnqueueCopyBuffer");
  }
  if (dst.memory != nullptr) {
    return status_of(cl.clEnqueueWriteBuffer(handle_, dst.memory, CL_FALSE, dst_offset, bytes, src.address + src_offset,
                                             0, nullptr, nullptr),
                     "clEnqueueWriteBuffer");
  }
  if (src.memory != nullptr) {
    return status_of(cl.clEnqueueReadBuffer(handle_, src.memory, CL_FALSE, src_offset, bytes, dst.address + dst_offset,
                                            0, nullptr, nullptr),
                     "clEnqueueReadBuffer");
  }
  std::byte *to = dst.address + dst_offset, *from = src.address + src_offset;
  if (context_.extensions().clEnqueueMemcpyINTEL != nullptr) {
    return status_of(
        context_.extensions().clEnqueueMemcpyINTEL(handle_, CL_FALSE, to, from, bytes, 0, nullptr, nullptr),
        "clEnqueueMemcpyINTEL");
  }
  return status_of(cl.clEnqueueSVMMemcpy(handle_, CL_FALSE, to, from, bytes, 0, nullptr, nullptr),
                   "clEnqueueSVMMemcpy");
}

kit::Result<Queue::Kernel*> Queue::kernel(uint32_t number) {
  if (number >= objects_.size()) objects_.resize(number + 1);
  Kernel& out = objects_[number];
  if (out.handle == nullptr) {
    auto made = kernels_.create(number);
    if (!made.ok()) return made.status();
    out.handle = made.value();
  }
  return &out;
}

cl_int Queue::set_argument(Kernel& kernel, uint32_t index, const simt::Place& place) {
  const Api& cl = context_.api();
  const Buffer* buffer = buffer_of(place.memory);
  const bool addressed = buffer != nullptr && buffer->address != nullptr;
  Kernel::Argument& known = kernel.arguments[index];
  const Kernel::Argument given{buffer == nullptr ? 0 : buffer->id, addressed ? place.offset : 0};
  if (known.id == given.id && known.offset == given.offset) return CL_SUCCESS;
  known.id = UINT64_MAX;  // unknown after a failure
  cl_int code = CL_SUCCESS;
  if (addressed) {
    const std::byte* address = buffer->address + place.offset;
    code = context_.extensions().clSetKernelArgMemPointerINTEL != nullptr
               ? context_.extensions().clSetKernelArgMemPointerINTEL(kernel.handle, index, address)
               : cl.clSetKernelArgSVMPointer(kernel.handle, index, address);
  } else {
    const cl_mem memory = buffer == nullptr ? nullptr : buffer->memory;
    code = cl.clSetKernelArg(kernel.handle, index, sizeof(cl_mem), buffer == nullptr ? nullptr : &memory);
  }
  if (code == CL_SUCCESS) known = given;
  return code;
}

kit::Status Queue::launch(const simt::Launch& launch) {
  const simt::DriverCall call;
  if (!call) return {};
  const Api& cl = context_.api();
  auto found = kernel(launch.kernel);
  if (!found.ok()) return found.status();
  Kernel& object = *found.value();
  const auto count = static_cast<uint32_t>(launch.places.size());
  auto* offsets = static_cast<uint64_t*>(launch.params);
  for (uint32_t i = 0; i < count; ++i) {
    const simt::Place& place = launch.places[i];
    const bool addressed = place.memory != nullptr && buffer_of(place.memory)->address != nullptr;
    offsets[i] = addressed ? 0 : place.offset;
    if (const cl_int code = set_argument(object, i, place); code != CL_SUCCESS)
      return status_of(code, "clSetKernelArg");
  }
  cl_int code = cl.clSetKernelArg(object.handle, count, launch.params_bytes, launch.params);
  if (code != CL_SUCCESS) return status_of(code, "clSetKernelArg");
  const std::size_t local[] = {launch.group_size, 1, 1};
  const std::size_t global[] = {std::size_t{launch.groups[0]} * launch.group_size, launch.groups[1], launch.groups[2]};
  const cl_uint dimensions = launch.groups[2] != 1 ? 3 : launch.groups[1] != 1 ? 2 : 1;
  code = cl.clEnqueueNDRangeKernel(handle_, object.handle, dimensions, nullptr, global, local, 0, nullptr, nullptr);
  if (code == CL_SUCCESS) ++launched_;
  return status_of(code, "clEnqueueNDRangeKernel");
}

}  // namespace backplane::opencl
