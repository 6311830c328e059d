// SPDX-License-Identifier: Apache-2.0
// An in-order command queue, its kernel objects and its events.
#pragma once

#include "driver_call.hpp"
#include "kernel_objects.hpp"
#include "runtime/kernels.hpp"

namespace backplane::opencl {

// A counted reference to an OpenCL event.
class Event {
 public:
  Event() = default;
  // Takes over the caller's reference.
  Event(const Api& api, cl_event handle) : api_(&api), handle_(handle) {}
  Event(const Event& other) : api_(other.api_), handle_(other.handle_) {
    if (const simt::DriverCall call; handle_ != nullptr && call) api_->clRetainEvent(handle_);
  }
  Event(Event&& other) noexcept : api_(other.api_), handle_(std::exchange(other.handle_, nullptr)) {}
  Event& operator=(Event other) noexcept {
    std::swap(api_, other.api_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Event() {
    if (const simt::DriverCall call; handle_ != nullptr && call) api_->clReleaseEvent(handle_);
  }
  cl_event handle() const { return handle_; }

 private:
  const Api* api_ = nullptr;
  cl_event handle_ = nullptr;
};

class Queue : public simt::Launcher {
 public:
  static kit::Result<std::unique_ptr<Queue>> create(const Context& context, Kernels& kernels);
  // Wraps a queue of the caller, and takes over one reference to the queue.
  static std::unique_ptr<Queue> wrap(const Context& context, Kernels& kernels, cl_command_queue handle);
  ~Queue() override;

  cl_command_queue handle() const { return handle_; }
  // Submits all commands.
  kit::Status flush();
  // Submits all commands, and returns the event that completes after them.
  kit::Result<Event> mark();
  kit::Status wait_for(const Event& event);
  kit::Status copy(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset, uint64_t bytes);

 private:
  Queue(const Context& context, Kernels& kernels)
      : Launcher(context.device().limits), context_(context), kernels_(kernels) {}
  kit::Status enqueue(const simt::Launch& launch) override;
  cl_int set_argument(cl_kernel kernel, uint32_t index, const Buffer* buffer, const std::byte* pointer) const;

  const Context& context_;
  Kernels& kernels_;
  cl_command_queue handle_ = nullptr;
  simt::KernelObjects<cl_kernel> objects_;
};

}  // namespace backplane::opencl
