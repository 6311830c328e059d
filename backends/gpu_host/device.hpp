// SPDX-License-Identifier: Apache-2.0
// An open device, with the interface that the kit's queue devices require (queue_device.hpp).
#pragma once

#include "gpu_host/platform.hpp"
#include "gpu_host/queue.hpp"
#include "operator.hpp"

namespace backplane::gpu_host {

// The members of Native that do not depend on the plugin.
class NativeDevice {
 public:
  // Loaded kernels outlive streams.
  static constexpr bool kProgramsStay = true;
  static constexpr bool kGuardsDriver = true;
  // A stream sees the writes of another stream only after a wait.
  static constexpr bool kWaitsForPassed = true;

  using Memory = simt::Buffer*;
  using Queue = gpu_host::Queue;
  using Mark = gpu_host::Mark;
  using Graph = gpu_host::Graph;
  using Kernel = std::shared_ptr<const simt::Operator>;
  using Program = simt::Program;
  using Semaphore = gpu_host::Semaphore;

  NativeDevice(OpenedDevice& opened, const kit::Host& host) : opened_(&opened), host_(host) {}

  kit::Status health() const { return context().health(); }
  kit::Status memory_info(uint32_t kind, bp_memory_info& out) const { return context().memory_info(kind, out); }
  kit::Result<Memory> allocate(const bp_buffer_desc& desc) { return context().allocate(desc); }
  void free(const Memory& memory) { context().free(memory); }
  void* map(const Memory& memory) const { return memory->address; }
  uint64_t address(const Memory& memory) const { return reinterpret_cast<uintptr_t>(memory->address); }
  bool imports() const { return context().device().has_imports; }
  kit::Result<Memory> import_memory(const bp_import_desc& desc, uint32_t& kind) {
    return context().import_memory(desc, kind);
  }

  std::span<const kit::ExternalType> external_types() const { return context().device().external_types; }
  kit::Result<Memory> allocate_external(const bp_buffer_desc& desc, std::string_view type) const {
    return context().allocate_external(desc, type);
  }
  kit::Result<bp_external_handle> export_memory(const Memory& memory, std::string_view type) const {
    return context().export_memory(memory, type);
  }
  kit::Result<Memory> import_external(const bp_external_handle& handle, uint32_t& kind) const {
    return context().import_external(handle, kind);
  }
  kit::Result<std::unique_ptr<Semaphore>> import_semaphore(const bp_external_handle& handle) const {
    return Semaphore::open(context(), handle);
  }
  kit::Status signal(const Semaphore&, uint64_t) const {
    return kit::unsupported("semaphore_signal: the host cannot raise this semaphore; pass a stream");
  }
  kit::Status signal(Queue& queue, Semaphore& semaphore, uint64_t value) const {
    return queue.signal(semaphore, value);
  }
  kit::Status wait(Queue& queue, const Semaphore& semaphore, uint64_t value) const {
    return queue.wait(semaphore, value);
  }

  kit::Result<bp_native_handle> device_handle(uint32_t index) const;
  kit::Result<bp_native_handle> handle(Queue& queue) const;
  kit::Result<bp_native_handle> handle(const Memory& memory) const;
  kit::Result<bp_native_handle> handle(const Mark& mark) const;
  kit::Result<std::unique_ptr<Queue>> wrap_queue(const bp_native_handle& handle) const;
  kit::Result<Memory> wrap_memory(const bp_native_handle& handle, uint32_t& kind) const;

  kit::Result<std::unique_ptr<Queue>> create_queue(const bp_stream_desc& desc) {
    return Queue::create(context(), opened_->kernels, opened_->events, opened_->products, desc.priority);
  }
  kit::Result<Mark> mark(Queue& queue, bool timed) { return queue.mark(timed); }
  kit::Status poll(const Mark& mark) const;
  kit::Status wait(const Mark& mark, uint64_t timeout_ns) const;
  kit::Status wait_for(Queue& queue, const Mark& mark) { return queue.wait_for(mark); }
  kit::Result<int64_t> elapsed(const Mark& begin, const Mark& end) const;
  kit::Status copy(Queue& queue, const Memory& dst, uint64_t dst_offset, const Memory& src, uint64_t src_offset,
                   uint64_t bytes) {
    return queue.copy(dst->address + dst_offset, src->address + src_offset, bytes);
  }

  bool graphs() const { return context().stack().has_graphs(); }
  kit::Result<std::unique_ptr<Graph>> begin_graph(std::span<const Graph::Range> ranges) const {
    return std::make_unique<Graph>(context(), opened_->events, opened_->products, ranges);
  }
  void record(Queue& queue, Graph* graph, std::span<const uint32_t> after) const { queue.record(graph, after); }
  kit::Status end_graph(Graph& graph) const { return graph.build(); }
  kit::Status launch_graph(Queue& queue, Graph& graph, std::span<const Graph::Range> ranges) const {
    return queue.launch_graph(graph, ranges);
  }

  kit::Status prepare(const Kernel& op, const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const;
  uint64_t workspace(const Program& program, const bp_op_desc& desc) const;
  bool is_deterministic(const Kernel& op, const kit::CheckedDesc& checked) const;
  kit::Result<Program> compile(const Kernel& op, const kit::CheckedDesc&, const kit::PlanForm& plan) {
    return simt::compile(op, plan, opened_->kernels, host_);
  }
  kit::Status launch(Queue& queue, const Program& program, const simt::Call& call) const {
    return simt::execute(queue, program, call);
  }

 private:
  const Context& context() const { return *opened_->context; }
  // Returns the workspace of a plan whose products the library may compute, or 0.
  uint64_t library_workspace(const Kernel& op, const bp_op_desc& desc) const;
  // Returns the type of the handles of `object`, such as cuda.stream.
  std::string type_of(const char* object) const { return kit::text(context().stack().plugin(), ".", object); }

  OpenedDevice* const opened_;
  const kit::Host host_;
};

// The native device of a plugin. `kPlatform()` returns the plugin's Platform.
template <Platform& (*kPlatform)()>
class Native : public NativeDevice {
 public:
  using NativeDevice::NativeDevice;

  static kit::Result<uint32_t> count() { return kPlatform().count(); }
  static kit::Status info(uint32_t index, bp_device_info& info) { return kPlatform().info(index, info); }
  static kit::Result<std::unique_ptr<Native>> open(uint32_t index, const kit::Host& host) {
    auto opened = kPlatform().open(index);
    if (!opened.ok()) return opened.status();
    return std::make_unique<Native>(*opened.value(), host);
  }
};

}  // namespace backplane::gpu_host
