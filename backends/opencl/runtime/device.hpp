// SPDX-License-Identifier: Apache-2.0
// An open device, with the interface that the kit's queue devices require (queue_device.hpp).
#pragma once

#include "operator.hpp"
#include "runtime/native_handles.hpp"

namespace backplane::opencl {

class Native {
 public:
  // Compiled kernels outlive streams, so a stream need not keep alive the programs that it executes.
  static constexpr bool kProgramsStay = true;
  static constexpr bool kGuardsDriver = true;
  // Without a wait, OpenCL does not guarantee that a queue sees the writes of another queue.
  static constexpr bool kWaitsForPassed = true;

  using Memory = simt::Buffer*;
  using Queue = opencl::Queue;
  using Mark = Event;
  using Kernel = std::shared_ptr<const simt::Operator>;
  using Program = simt::Program;

  static kit::Result<uint32_t> count();
  static kit::Status info(uint32_t index, bp_device_info& info);
  static kit::Result<std::unique_ptr<Native>> open(uint32_t index, const kit::Host& host);

  kit::Status memory_info(uint32_t kind, bp_memory_info& out) const;
  kit::Result<Memory> allocate(const bp_buffer_desc& desc) { return context().allocate(desc); }
  void free(const Memory& memory) { context().free(memory); }
  void* map(const Memory& memory) const { return buffer_of(memory)->address; }
  bool imports() const { return context().device().imports(); }
  kit::Result<Memory> import_memory(const bp_import_desc& desc, uint32_t& kind) {
    kind = BP_MEMORY_SHARED;
    return context().import_memory(desc);
  }

  kit::Result<bp_native_handle> device_handle(uint32_t index) { return handle_of_device(context(), index); }
  kit::Result<bp_native_handle> handle(Queue& queue) { return handle_of(queue); }
  kit::Result<bp_native_handle> handle(const Memory& memory) { return handle_of(*buffer_of(memory)); }
  kit::Result<bp_native_handle> handle(const Mark& mark) { return handle_of(mark); }
  kit::Result<std::unique_ptr<Queue>> wrap_queue(const bp_native_handle& handle) {
    return opencl::wrap_queue(context(), shared_->kernels, handle);
  }
  kit::Result<Memory> wrap_memory(const bp_native_handle& handle, uint32_t& kind) {
    return opencl::wrap_memory(context(), handle, kind);
  }

  kit::Result<std::unique_ptr<Queue>> create_queue(const bp_stream_desc&) {
    return Queue::create(context(), shared_->kernels);
  }
  kit::Result<Mark> mark(Queue& queue, bool) { return queue.mark(); }
  kit::Status poll(const Mark& mark) const;
  kit::Status wait_for(Queue& queue, const Mark& mark) { return queue.wait_for(mark); }
  kit::Result<int64_t> elapsed(const Mark& begin, const Mark& end) const;
  kit::Status copy(Queue& queue, const Memory& dst, uint64_t dst_offset, const Memory& src, uint64_t src_offset,
                   uint64_t bytes) {
    return queue.copy(*buffer_of(dst), dst_offset, *buffer_of(src), src_offset, bytes);
  }

  kit::Status prepare(const Kernel& op, const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const {
    return op->prepare_on(context().device().limits, checked, needs);
  }
  kit::Result<Program> compile(const Kernel& op, const kit::CheckedDesc& checked, const kit::PlanForm& plan);
  kit::Status launch(Queue& queue, const Program& program, const simt::Call& call) const {
    return simt::execute(queue, program, call);
  }

 private:
  // State that all Native objects of a device share. The state exists until the process ends, so
  // that a device that is opened again reuses the context and the compiled kernels.
  struct Shared {
    explicit Shared(std::unique_ptr<Context> made) : context(std::move(made)), kernels(*context) {}
    const std::unique_ptr<Context> context;
    Kernels kernels;
  };
  static kit::Result<Shared*> shared(uint32_t index);

  Native(Shared& shared, const kit::Host& host) : shared_(&shared), host_(host) {}
  Context& context() const { return *shared_->context; }

  Shared* const shared_;
  const kit::Host host_;
};

}  // namespace backplane::opencl
