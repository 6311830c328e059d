// SPDX-License-Identifier: Apache-2.0
#include "runtime/queue.hpp"

#include <backplane/kit/driver_guard.hpp>
#include <optional>

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

std::unique_ptr<Queue> Queue::wrap(const Context& context, Kernels& kernels, cl_command_queue handle) {
  std::unique_ptr<Queue> out(new Queue(context, kernels));
  out->handle_ = handle;
  return out;
}

Queue::~Queue() {
  const simt::DriverCall call;
  if (!call) return;
  const Api& cl = context_.api();
  objects_.clear([&](cl_kernel kernel) { cl.clReleaseKernel(kernel); });
  if (handle_ != nullptr) cl.clReleaseCommandQueue(handle_);
}

kit::Status Queue::flush() {
  const simt::DriverCall call;
  if (!call) return {};
  return status_of(context_.api().clFlush(handle_), "clFlush");
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
    return status_of(cl.clEnqueueCopyBuffer(handle_, src.memory, dst.memory, src.offset + src_offset,
                                            dst.offset + dst_offset, bytes, 0, nullptr, nullptr),
                     "clEnqueueCopyBuffer");
  }
  if (dst.memory != nullptr) {
    return status_of(cl.clEnqueueWriteBuffer(handle_, dst.memory, CL_FALSE, dst.offset + dst_offset, bytes,
                                             src.address + src_offset, 0, nullptr, nullptr),
                     "clEnqueueWriteBuffer");
  }
  if (src.memory != nullptr) {
    return status_of(cl.clEnqueueReadBuffer(handle_, src.memory, CL_FALSE, src.offset + src_offset, bytes,
                                            dst.address + dst_offset, 0, nullptr, nullptr),
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

cl_int Queue::set_argument(cl_kernel kernel, uint32_t index, const Buffer* buffer, const std::byte* pointer) const {
  const Api& cl = context_.api();
  if (pointer != nullptr) {
    return context_.extensions().clSetKernelArgMemPointerINTEL != nullptr
               ? context_.extensions().clSetKernelArgMemPointerINTEL(kernel, index, pointer)
               : cl.clSetKernelArgSVMPointer(kernel, index, pointer);
  }
  return cl.clSetKernelArg(kernel, index, sizeof(cl_mem), buffer == nullptr ? nullptr : &buffer->memory);
}

kit::Status Queue::enqueue(const simt::Launch& launch) {
  const simt::DriverCall call;
  if (!call) return {};
  const Api& cl = context_.api();
  std::optional<kit::DriverGuard> guard;
  if (!objects_.has(launch.kernel)) guard.emplace();
  auto found = objects_.get(launch.kernel, [&](uint32_t number) { return kernels_.create(number); });
  if (!found.ok()) return found.status();
  cl_kernel kernel = found.value()->handle;
  kit::Status status = simt::KernelObjects<cl_kernel>::set_arguments(
      *found.value(), launch, [&](uint32_t i, const simt::Buffer* buffer, const std::byte* pointer) {
        return status_of(set_argument(kernel, i, buffer_of(buffer), pointer), "clSetKernelArg");
      });
  if (!status.ok()) return status;
  const auto count = static_cast<cl_uint>(launch.places.size());
  cl_int code = cl.clSetKernelArg(kernel, count, launch.params_bytes, launch.params);
  if (code != CL_SUCCESS) return status_of(code, "clSetKernelArg");
  const std::size_t local[] = {launch.group_size, 1, 1};
  const std::size_t global[] = {std::size_t{launch.groups[0]} * launch.group_size, launch.groups[1], launch.groups[2]};
  const cl_uint dimensions = launch.groups[2] != 1 ? 3 : launch.groups[1] != 1 ? 2 : 1;
  code = cl.clEnqueueNDRangeKernel(handle_, kernel, dimensions, nullptr, global, local, 0, nullptr, nullptr);
  return status_of(code, "clEnqueueNDRangeKernel");
}

}  // namespace backplane::opencl
