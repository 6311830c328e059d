// SPDX-License-Identifier: Apache-2.0
// A complete device over host memory. A plugin supplies the kernels.
#pragma once

#include <backplane/kit/device_checks.hpp>
#include <backplane/kit/external.hpp>
#include <backplane/kit/host_memory.hpp>
#include <backplane/kit/host_stream.hpp>
#include <backplane/kit/native.hpp>
#include <map>
#include <span>

namespace backplane::kit {

// Implements the methods that DeviceTable (device_table.hpp) requires.
class HostDevice {
 public:
  using Buffer = HostBuffer;
  using Stream = HostStream;
  using Event = HostEvent;
  using Plan = kit::Plan;
  using Graph = HostGraph;
  using Pack = kit::Pack;

  // `kernels` must outlive the device. All open devices with the same index share `memory`.
  HostDevice(const Kernels& kernels, std::shared_ptr<HostMemory> memory)
      : kernels_(kernels), memory_(std::move(memory)) {}

  Status memory_info(uint32_t kind, bp_memory_info& out) const { return memory_->info(kind, out); }
  Result<Buffer*> create_buffer(const bp_buffer_desc& desc) { return memory_->create(desc); }
  Result<Buffer*> import_memory(const bp_import_desc& desc, uint32_t& kind) {
    if (desc.type > BP_IMPORT_DEVICE) return unsupported("import_memory: the type ", desc.type, " is not known");
    kind = desc.type == BP_IMPORT_HOST ? BP_MEMORY_SHARED : BP_MEMORY_DEVICE;
    return memory_->import(reinterpret_cast<void*>(desc.address), desc.bytes, kind);
  }
  void destroy(Buffer* buffer) { memory_->destroy(buffer); }

  // Types of handles of "bp.native": an address of the process, a HostQueue, and a Timeline. Only
  // the device that returned the handle of a queue accepts this handle.
  static constexpr const char* kAddressType = "host.address";
  static constexpr const char* kQueueType = "backplane.host_queue";
  static constexpr const char* kTimelineType = "backplane.timeline";

  Result<bp_native_handle> native(const Buffer& buffer) const {
    bp_native_handle handle =
        native_handle(kAddressType, reinterpret_cast<uint64_t>(buffer.span.address), BP_NATIVE_ADDRESS);
    handle.bytes = buffer.span.bytes;
    return handle;
  }
  Result<Buffer*> wrap_memory(const bp_native_handle& handle, uint32_t& kind) {
    if (Status status = check_native_type(handle, kAddressType); !status.ok()) return status;
    if (handle.value == 0) return invalid_argument("buffer_wrap: the address is null");
    kind = BP_MEMORY_SHARED;
    return memory_->import(reinterpret_cast<void*>(handle.value + handle.offset), handle.bytes, kind);
  }
  Result<bp_native_handle> native(const Stream& stream) {
    if (stream.timeline()->failed()) return stream.timeline()->failure();
    const auto value = reinterpret_cast<uint64_t>(stream.queue().get());
    const std::lock_guard lock(queues_mutex_);
    std::erase_if(queues_, [](const auto& entry) { return entry.second.expired(); });
    queues_[value] = stream.queue();
    return native_handle(kQueueType, value);
  }
  Result<Stream*> wrap_stream(const bp_native_handle& handle) {
    if (Status status = check_native_type(handle, kQueueType); !status.ok()) return status;
    const std::lock_guard lock(queues_mutex_);
    const auto found = queues_.find(handle.value);
    auto queue = found == queues_.end() ? nullptr : found->second.lock();
    if (queue == nullptr) {
      return invalid_argument("stream_wrap: ", handle.value, " is no queue whose handle this device returned");
    }
    return new Stream(std::move(queue));
  }
  Result<bp_native_handle> native(const Event& event) const {
    const Event::Record record = event.latest();
    if (record.timeline == nullptr) return invalid_argument("event_native: the event was never recorded; record it");
    if (record.timeline->failed_before(record.point)) return record.timeline->failure();
    bp_native_handle handle = native_handle(kTimelineType, reinterpret_cast<uint64_t>(record.timeline.get()));
    handle.offset = record.point;
    return handle;
  }
  // Types of external handles of memory and of semaphores. Both are file descriptors from
  // memfd_create, and any device of this class imports them.
  static constexpr std::string_view kFileType = "memfd";
  static constexpr std::string_view kSemaphoreType = "backplane.semaphore_memfd";
  static constexpr ExternalType kExternalTypes[] = {
      {kFileType, BP_EXTERNAL_MEMORY_EXPORT | BP_EXTERNAL_MEMORY_IMPORT},
      {kSemaphoreType, BP_EXTERNAL_SEMAPHORE_EXPORT | BP_EXTERNAL_SEMAPHORE_IMPORT}};
  using Semaphore = std::shared_ptr<HostSemaphore>;  // tasks in a queue share the semaphore

  std::span<const ExternalType> external_types() const { return kExternalTypes; }
  Result<Buffer*> create_external(const bp_buffer_desc& desc, std::string_view type) {
    if (Status status = check_external_type(type, kFileType); !status.ok()) return status;
    return memory_->create_external(desc);
  }
  Result<bp_external_handle> export_memory(const Buffer& buffer, std::string_view type) const {
    if (Status status = check_external_type(type, kFileType); !status.ok()) return status;
    if (buffer.file == nullptr) {
      return unsupported("buffer_export: the buffer was not created for export; use buffer_create_external");
    }
    auto fd = buffer.file->duplicate("buffer_export");
    if (!fd.ok()) return fd.status();
    bp_external_handle handle = external_handle(kFileType, fd.value());
    handle.offset = buffer.file->offset();
    handle.bytes = buffer.span.bytes;
    handle.object_bytes = buffer.file->file_bytes();
    return handle;
  }
  Result<Buffer*> import_external(const bp_external_handle& handle, uint32_t& kind) {
    if (Status status = check_external_handle(handle, kFileType, kNoUuid); !status.ok()) return status;
    kind = BP_MEMORY_SHARED;
    return memory_->open_external(handle, kind);
  }
  Result<Semaphore*> create_semaphore(std::string_view type, uint64_t value) {
    if (Status status = check_external_type(type, kSemaphoreType); !status.ok()) return status;
    return owned(HostSemaphore::create(value));
  }
  Result<bp_external_handle> export_semaphore(const Semaphore& semaphore, std::string_view type) const {
    if (Status status = check_external_type(type, kSemaphoreType); !status.ok()) return status;
    auto fd = semaphore->file().duplicate("semaphore_export");
    if (!fd.ok()) return fd.status();
    return external_handle(kSemaphoreType, fd.value());
  }
  Result<Semaphore*> import_semaphore(const bp_external_handle& handle) {
    if (Status status = check_external_handle(handle, kSemaphoreType, kNoUuid); !status.ok()) return status;
    return owned(HostSemaphore::open(handle));
  }
  Status signal(Stream* stream, const Semaphore& semaphore, uint64_t value) {
    if (stream != nullptr) return enqueue_semaphore(*stream, HostTask::Kind::kSignal, semaphore, value);
    semaphore->raise(value);
    return {};
  }
  Status wait(Stream& stream, const Semaphore& semaphore, uint64_t value) {
    return enqueue_semaphore(stream, HostTask::Kind::kWaitSemaphore, semaphore, value);
  }
  void destroy(Semaphore* semaphore) { delete semaphore; }

  // All devices of a plugin use the memory of the process.
  Result<uint32_t> peer_uses(HostDevice&) { return uint32_t{BP_PEER_COPY | BP_PEER_OPERAND | BP_PEER_WAIT}; }
  Status peer_copy(Stream& stream, HostDevice&, Buffer& dst, uint64_t dst_offset, HostDevice&, const Buffer& src,
                   uint64_t src_offset, uint64_t bytes) {
    return copy(stream, dst, dst_offset, src, src_offset, bytes);
  }
  Result<Buffer*> map_peer(HostDevice&, const Buffer& buffer, uint32_t& kind) {
    kind = buffer.kind;
    return memory_->import(buffer.span.address, buffer.span.bytes, kind);
  }
  Status wait_peer_event(Stream& stream, HostDevice&, const Event& event) { return wait_event(stream, event); }

  Result<void*> map(const Buffer& buffer) const {
    if (buffer.kind == BP_MEMORY_DEVICE) return no_host_address();
    return static_cast<void*>(buffer.span.address);
  }

  Result<uint64_t> address(const Buffer& buffer) const { return reinterpret_cast<uint64_t>(buffer.span.address); }

  Result<Stream*> create_stream(const bp_stream_desc&) { return make_stream({}); }
  void destroy(Stream* stream) { delete stream; }
  Status wait(Stream& stream, uint64_t timeout_ns) { return stream.wait(timeout_ns); }

  Result<Event*> create_event(uint32_t flags) {
    if (Status status = check_event_flags(flags); !status.ok()) return status;
    return new Event((flags & BP_EVENT_TIMING) != 0);
  }
  void destroy(Event* event) { delete event; }
  Status record(Event& event, Stream& stream) { return event.record(stream); }
  Status wait(const Event& event, uint64_t timeout_ns) { return event.wait(timeout_ns); }

  Status wait_event(Stream& stream, const Event& event) {
    if (stream.timeline()->failed()) return stream.timeline()->failure();
    const Event::Record record = event.latest();
    if (record.capture != nullptr) return join(stream, record);
    if (record.timeline != nullptr && stream.capturing()) return recorded_outside();
    if (record.timeline == nullptr || record.timeline == stream.timeline()) return {};
    if (record.timeline->reached(record.point) && !record.timeline->failed_before(record.point)) return {};
    return stream.enqueue(HostTask::Kind::kWait, [&](HostTask& task) {
      task.other = record.timeline;
      task.point = record.point;
      return Status{};
    });
  }

  Result<int64_t> elapsed(const Event& begin, const Event& end) const {
    const Event::Record from = begin.latest(), to = end.latest();
    if (from.stamp == nullptr || to.stamp == nullptr) {
      return invalid_argument("event_elapsed: both events must be made with BP_EVENT_TIMING and recorded");
    }
    for (const Event::Record* record : {&from, &to}) {
      if (!record->timeline->reached(record->point)) return Status{BP_NOT_READY, {}};
      if (record->timeline->failed_before(record->point)) return record->timeline->failure();
    }
    return to.stamp->ns.load(std::memory_order_relaxed) - from.stamp->ns.load(std::memory_order_relaxed);
  }

  // Begins to capture a stream (graph_table.hpp).
  Status begin_graph(Stream& stream, std::span<const bp_graph_binding> bindings) {
    if (stream.capturing()) return captures_already();
    if (stream.timeline()->failed()) return stream.timeline()->failure();
    std::vector<HostWork::Binding> ranges;
    for (const bp_graph_binding& binding : bindings) {
      const Buffer& buffer = *reinterpret_cast<const Buffer*>(binding.buffer);
      if (Status status = check_binding("graph_begin", buffer.span.bytes, binding); !status.ok()) return status;
      ranges.push_back({buffer.span.address + binding.offset, binding.bytes, buffer.kind});
    }
    stream.join(std::make_shared<HostCapture>(std::make_shared<HostWork>(std::move(ranges))), 0);
    return {};
  }
  Result<Graph*> end_graph(Stream& stream, bp_graph_info& info) {
    if (!stream.capturing() || stream.lane() != 0) return captures_nothing();
    std::shared_ptr<HostWork> work = stream.capture()->end();
    if (work == nullptr) return not_joined();
    info.nodes = work->tasks().size();
    return new Graph{std::move(work)};
  }
  Status launch(Stream& stream, const Graph& graph, std::span<const bp_graph_binding> bindings) {
    if (stream.capturing()) return launched_in_capture();
    const auto& recorded = graph.work->bindings();
    for (std::size_t i = 0; i < bindings.size(); ++i) {
      const Buffer& buffer = *reinterpret_cast<const Buffer*>(bindings[i].buffer);
      Status status = check_binding("graph_launch", buffer.span.bytes, bindings[i]);
      if (status.ok()) {
        status = check_replacement(i, bindings[i].bytes, buffer.kind, recorded[i].bytes, recorded[i].kind);
      }
      if (!status.ok()) return status;
    }
    return stream.enqueue(HostTask::Kind::kGraph, [&](HostTask& task) {
      task.addresses.clear();
      for (std::size_t i = 0; i < recorded.size(); ++i) {
        const bool replaced = !bindings.empty();
        task.addresses.push_back(replaced ? address_of(bindings[i]) : recorded[i].address);
      }
      task.work = graph.work;
      return Status{};
    });
  }
  std::size_t binding_count(const Graph& graph) const { return graph.work->bindings().size(); }
  void destroy(Graph* graph) { delete graph; }

  Status copy(Stream& stream, Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
              uint64_t bytes) {
    if (Status status = check_span("destination", dst.span.bytes, dst_offset, bytes); !status.ok()) return status;
    if (Status status = check_span("source", src.span.bytes, src_offset, bytes); !status.ok()) return status;
    if (Status status = check_kinds_of_copy(dst.kind, src.kind); !status.ok()) return status;
    return enqueue_copy(stream, dst.span.address + dst_offset, src.span.address + src_offset, bytes);
  }
  Status copy_in(Stream& stream, Buffer& dst, uint64_t dst_offset, const void* src, uint64_t bytes) {
    if (Status status = check_span("destination", dst.span.bytes, dst_offset, bytes); !status.ok()) return status;
    return enqueue_copy(stream, dst.span.address + dst_offset, src, bytes);
  }
  Status copy_out(Stream& stream, void* dst, const Buffer& src, uint64_t src_offset, uint64_t bytes) {
    if (Status status = check_span("source", src.span.bytes, src_offset, bytes); !status.ok()) return status;
    return enqueue_copy(stream, dst, src.span.address + src_offset, bytes);
  }

  Status create_plan(const bp_op_desc* desc, Plan** out, bp_plan_info& info) {
    Plan plan;
    if (Status status = make_plan(kernels_, desc, plan, info); !status.ok()) return status;
    info.flags |= BP_PLAN_DETERMINISTIC;  // each kernel runs on one thread, in a fixed order
    if (out != nullptr) *out = new Plan(std::move(plan));
    return {};
  }
  void destroy(Plan* plan) { delete plan; }

  Status execute(Stream& stream, const Plan& plan, const bp_execution* execution) {
    Status status = stream.enqueue(HostTask::Kind::kCall, [&](HostTask& task) {
      task.kernel = plan.kernel.run;
      return bind_call(
          plan, execution, [](bp_buffer* buffer) { return reinterpret_cast<Buffer*>(buffer)->span; }, task.call);
    });
    return status.ok() || status.op() != 0 ? status : std::move(status).with_op(plan.op->id);
  }

  // Returns whether any kernel reads packed operands. If so, the device has "bp.pack"
  // (pack_table.hpp).
  bool packs() const { return kernels_.packs(); }
  Status create_pack(const CheckedDesc& checked, uint32_t input, Pack** out, bp_pack_info& info) {
    Pack pack;
    if (Status status = make_pack(kernels_, checked, input, pack); !status.ok()) return status;
    info.bytes = pack.prepared.bytes;
    info.layout = pack.prepared.layout;
    if (out != nullptr) *out = new Pack(std::move(pack));
    return {};
  }
  void destroy(Pack* pack) { delete pack; }
  Status execute(Stream& stream, const Pack& pack, const Buffer& src, uint64_t src_offset, Buffer& dst,
                 uint64_t dst_offset) {
    if (stream.capturing()) {
      return invalid_argument("pack_execute: the stream captures a graph; pack before the capture");
    }
    Status status = stream.enqueue(HostTask::Kind::kCall, [&](HostTask& task) {
      task.kernel = pack.prepared.run;
      return bind_pack(pack, HostMemory::kAlignment, src.span, src_offset, dst.span, dst_offset, task.call);
    });
    return status.ok() ? status : std::move(status).with_op(pack.op->id);
  }

 protected:
  // Creates a stream whose thread runs `begin` before any task.
  static Result<Stream*> make_stream(std::function<void()> begin) {
    try {
      return new Stream(std::move(begin));
    } catch (const std::system_error& failure) {
      return out_of_memory("stream_create: no thread to be had: ", failure.what());
    }
  }

 private:
  static std::byte* address_of(const bp_graph_binding& binding) {
    return reinterpret_cast<const Buffer*>(binding.buffer)->span.address + binding.offset;
  }
  // Makes a stream wait for a point of a capture. The stream joins the capture.
  static Status join(Stream& stream, const Event::Record& point) {
    if (!point.capture->active()) return recorded_in_graph("stream_wait_event");
    if (stream.capturing() && stream.capture() != point.capture) return captures_another();
    if (!stream.capturing()) stream.join(point.capture, point.capture->add_lane());
    stream.capture()->wait(stream.lane(), point.counts);
    return {};
  }

  static Result<Semaphore*> owned(Result<Semaphore> made) {
    if (!made.ok()) return made.status();
    return new Semaphore(std::move(made.value()));
  }
  static Status enqueue_semaphore(Stream& stream, HostTask::Kind kind, const Semaphore& semaphore, uint64_t value) {
    return stream.enqueue(kind, [&](HostTask& task) {
      task.semaphore = semaphore;
      task.value = value;
      return Status{};
    });
  }
  static Status enqueue_copy(Stream& stream, void* dst, const void* src, uint64_t bytes) {
    Status status = check_host_pointer(dst == nullptr ? dst : src, bytes);
    const auto to = reinterpret_cast<uintptr_t>(dst), from = reinterpret_cast<uintptr_t>(src);
    if (status.ok()) status = check_no_overlap(to, from, bytes);
    if (!status.ok()) return status;
    if (bytes == 0) return stream.timeline()->failed() ? stream.timeline()->failure() : Status{};
    return stream.enqueue(HostTask::Kind::kCopy, [&](HostTask& task) {
      task.dst = dst;
      task.src = src;
      task.bytes = bytes;
      return Status{};
    });
  }

  static constexpr uint8_t kNoUuid[16] = {};

  const Kernels& kernels_;
  const std::shared_ptr<HostMemory> memory_;
  std::mutex queues_mutex_;
  std::map<uint64_t, std::weak_ptr<HostQueue>> queues_;  // queues whose handles were returned; the key is the handle
};

}  // namespace backplane::kit
