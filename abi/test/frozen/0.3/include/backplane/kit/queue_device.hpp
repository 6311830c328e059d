// SPDX-License-Identifier: Apache-2.0
// A device other than the host, over a small native interface: in-order queues and memory. The kit
// implements streams, events, failures, timeouts, lifetimes and checks. A plugin is a class
// `Native` and one line:
//
//   class Driver : public backplane::kit::QueueDriver<Native> { /* constructor: adds operators */ };
//
// Native has these types:
//   Memory    handle of an allocation: a small value such as a pointer, an id or an address
//   Queue     an in-order queue; one call at a time
//   Mark      a point in a queue; default-constructible and copyable; released with its last copy
//   Kernel    an operator as the plugin registers it: a source, an entry point or an object
//   Program   a kernel that is ready to launch; default-constructible; many threads use it at once
//
// and these members. Any number of threads call them at once, except that calls with the same queue
// are serialised.
//   static Result<uint32_t> count();
//       The number of devices, in a fixed order.
//   static Status info(uint32_t index, bp_device_info&);
//       Describes a device that is not open. The kit has already set four fields: the driver's name, the type OTHER,
//       the memory kind DEVICE, and an alignment of 256. The kit adds TIMING if Native has `elapsed`.
//   static Result<std::unique_ptr<Native>> open(uint32_t index, const Host&);
//   Status memory_info(uint32_t kind, bp_memory_info&);
//   Result<Memory> allocate(const bp_buffer_desc&);
//       The descriptor is checked; `alignment` is never 0.
//   void free(const Memory&);
//   Result<std::unique_ptr<Queue>> create_queue(const bp_stream_desc&);
//   Result<Mark> mark(Queue&, bool timed);
//       Submits all enqueued work. The mark is the point after this work. After OUT_OF_MEMORY or INTERNAL, stream_wait
//       calls mark again until its timeout, at most for a second.
//   Status poll(const Mark&);
//       Returns OK if the mark has completed, TIMEOUT if the mark is pending, or the failure of
//       earlier work. Return a failure only when no earlier work accesses memory any more.
//   Status wait_for(Queue&, const Mark&);
//       Makes later work of this queue start after the mark has completed. Does not block the host.
//   Status copy(Queue&, Memory dst, uint64_t dst_offset, Memory src, uint64_t src_offset,
//               uint64_t bytes);
//   Result<Program> compile(const Kernel&, const CheckedDesc&, const PlanForm&);
//       Define compile(const Kernel&) instead if the program depends on nothing else. The kit then
//       compiles once for each open device, operator and pair of dtypes.
//   Status launch(Queue&, const Program&, const QueueCall<Memory>&);
// mark, wait_for, copy and launch enqueue all of their work or nothing. They never wait for the
// device. A failure returns one of these codes:
//   UNSUPPORTED       the device cannot run the operator; only compile() and prepare() return it
//   OUT_OF_MEMORY     nothing was enqueued; core frees its pools and tries again
//   INTERNAL          nothing was enqueued, or compilation failed; the message is the driver's text
//   EXECUTION_FAILED  a part was enqueued, or accepted work failed; permanent for the stream
//   DEVICE_LOST       permanent for the device
//
// Native may also have these members:
//   Status wait(const Mark&, uint64_t timeout_ns);
//       Like poll, but waits up to timeout_ns. If Native has no wait, the kit polls.
//   void* map(const Memory&);
//       Required for memory of the kinds HOST and SHARED.
//   Status copy_in(Queue&, Memory, uint64_t offset, const void*, uint64_t bytes);
//   Status copy_out(Queue&, void*, Memory, ...);
//       Required if the device has no HOST memory.
//   Result<int64_t> elapsed(const Mark&, const Mark&);
//       Nanoseconds between two timed marks that have completed. Required for BP_CAP_TIMING.
//   uint64_t address(const Memory&);
//       Implements the slot buffer_address.
//   Status prepare(const Kernel&, const CheckedDesc&, PlanNeeds&);
//       May refuse the descriptor, stage more operands or request workspace. Does not compile.
//   uint64_t workspace(const Program&, const bp_op_desc&);
//       Bytes of workspace, for plans with PlanNeeds::sized_workspace.
//   bool is_deterministic(const Kernel&, const CheckedDesc&);
//       Returns whether every execution of the plan gives the same bits. If Native lacks this member
//       and has BP_CAP_DETERMINISTIC, all plans are deterministic.
//   Status health() const;
//       The device's failure, which every later call returns. If a native device has failed when it is opened,
//       device_open returns UNAVAILABLE.
//   Result<Memory> import_memory(const bp_import_desc&, uint32_t& kind); bool imports() const;
//       Implement the interface "bp.import", which wraps foreign memory. imports() returns whether
//       this device can import memory.
//   Result<bp_native_handle> device_handle(uint32_t index);
//   Result<bp_native_handle> handle(Queue&);
//   Result<bp_native_handle> handle(const Memory&);
//   Result<bp_native_handle> handle(const Mark&);
//       Implement the slots of "bp.native" that return handles (native.h). After handle(Queue&), the queue submits
//       each command at once. The kit sets `bytes` in the handle of a buffer.
//   Result<std::unique_ptr<Queue>> wrap_queue(const bp_native_handle&);
//   Result<Memory> wrap_memory(const bp_native_handle&, uint32_t& kind);
//       Implement the slots of "bp.native" that wrap objects. A queue that wraps a native queue does not destroy the
//       native queue, and free() does not free wrapped memory.
//   std::span<const ExternalType> external_types() const;
//       Implements the interface "bp.external" (external_table.hpp) with the members that follow. If
//       the list is empty, the device has no such interface.
//   Result<Memory> allocate_external(const bp_buffer_desc&, std::string_view type);
//       The descriptor is checked; `alignment` is never 0.
//   Result<bp_external_handle> export_memory(const Memory&, std::string_view type);
//       The kit sets `bytes` in the handle.
//   Result<Memory> import_external(const bp_external_handle&, uint32_t& kind);
//   struct Semaphore;
//   Result<std::unique_ptr<Semaphore>> create_semaphore(std::string_view type, uint64_t value);
//   Result<bp_external_handle> export_semaphore(Semaphore&, std::string_view type);
//   Result<std::unique_ptr<Semaphore>> import_semaphore(const bp_external_handle&);
//   Status signal(Semaphore&, uint64_t value);
//       Raises the semaphore during the call.
//   Status signal(Queue&, Semaphore&, uint64_t value); Status wait(Queue&, Semaphore&, uint64_t value);
//       Enqueue a command, by the rules of copy and launch above. signal submits all enqueued work.
//   class Graph; bool graphs() const;
//       Implement the interface "bp.graph", which launches recorded commands. graphs() returns whether
//       this device offers the interface. A Graph contains nodes, which the kit numbers from 0. Its
//       destructor runs after its launches have ended. It has the members
//         uint32_t size() const; void shrink(uint32_t size);
//       where shrink keeps the first `size` nodes and removes the others.
//   Result<std::unique_ptr<Graph>> begin_graph(std::span<const QueueRange<Memory>> ranges);
//       A launch may replace these ranges.
//   void record(Queue&, Graph*, std::span<const uint32_t> after);
//       Until record(queue, nullptr, {}), copy and launch of this queue add nodes to the graph, and
//       execute nothing. The first node follows the nodes `after`, and each other node follows the
//       node before it. A command adds any number of nodes.
//   Status end_graph(Graph&);
//       Prepares the launches. Returns UNSUPPORTED if core must launch the work in another way.
//   Status launch_graph(Queue&, Graph&, std::span<const QueueRange<Memory>> ranges);
//       Enqueues all nodes. A range has the size and the kind of memory of the recorded range.
//   static constexpr uint64_t kMaxAlignment;
//       The maximum alignment of buffers. The default is the device's alignment.
//   static constexpr bool kWaitsForPassed = true;
//       The kit calls wait_for even for marks that have completed. Define this constant if a queue
//       sees the writes of another queue only after a wait.
//   static constexpr bool kProgramsStay = true;
//       Launched work does not need its Program, so streams do not keep programs alive.
//   static constexpr bool kGuardsDriver = true;
//       compile and launch use a DriverGuard where they start a driver or compile a kernel for the first time.
//       Without this constant, the kit uses a guard for every plan and for its first launch, which costs about 40 µs.
//   static constexpr bool kStaysOpen = true;
//       One Native for each index exists until the process ends, with its compiled kernels. Define
//       this constant for drivers that leak or are slow when they are reopened. The Native then
//       outlives its Host. Certify the plugin once without this constant, because the constant also
//       hides leaks in your destructor of Native.
#pragma once

#include <backplane/kit/external_table.hpp>
#include <backplane/kit/plugin.hpp>
#include <backplane/kit/queue_stream.hpp>
#include <map>

namespace backplane::kit {

template <class Kernel>
struct QueueOperator {
  Kernel kernel;
  bool dense = true;            // requires dense operands; core stages other operands
  bool device_scalars = false;  // supports BP_OP_FLAG_DEVICE_SCALARS
  uint64_t workspace_bytes = 0;
  uint32_t mixed = 0;  // mask of rules::Mixed: the supported combinations of dtypes, and additions
};

namespace detail {

// Returns INVALID_ARGUMENT if the descriptor is not of the plan's class.
inline Status check_class(const PlanForm& plan, const bp_op_desc& desc) {
  const auto fits = [](const bp_tensor_desc* views, uint32_t count, uint32_t planned) {
    return (planned == 0 || views != nullptr) && count >= planned && count <= BP_MAX_OPERANDS &&
           (count == planned || rules::trimmed(views, count) <= planned);
  };
  if (desc.op != plan.op->id || !fits(desc.inputs, desc.input_count, plan.input_count) ||
      !fits(desc.outputs, desc.output_count, plan.output_count)) {
    return invalid_argument(plan.op->name, ": the descriptor is not of the plan's class; make a plan for it");
  }
  for (uint32_t i = 0; i < plan.input_count + plan.output_count; ++i) {
    const bp_tensor_desc& view = i < plan.input_count ? desc.inputs[i] : desc.outputs[i - plan.input_count];
    const Operand& planned = plan.operands[i];
    const bool is_same =
        view.dtype == planned.dtype &&
        (view.dtype == 0 || (view.rank == planned.rank && kept_class(view, planned.staged) == planned.classes));
    if (!is_same) return not_planned(plan, i, view);
  }
  return {};
}

}  // namespace detail

// A native device, and the programs that all plans of an operator share.
template <class Native>
struct OpenNative {
  using Program = std::shared_ptr<const typename Native::Program>;
  struct Common {
    std::mutex mutex;  // locked during compilation
    Program program;
  };

  std::unique_ptr<Native> native;
  std::mutex mutex;
  std::map<std::array<uint32_t, 3>, Common> programs;  // the key is the operator and its two dtypes
};

// Implements the methods that DeviceTable (device_table.hpp) requires.
template <class Native>
class QueueDevice {
  using Memory = typename Native::Memory;
  using Program = typename Native::Program;

 public:
  using Buffer = QueueBuffer<Memory>;
  using Event = QueueEvent<Native>;
  using Plan = QueuePlan<Native>;
  using Stream = QueueStream<Native>;
  using Graph = QueueGraph<Native>;
  using Operator = QueueOperator<typename Native::Kernel>;
  using Semaphore = typename SemaphoreOf<Native>::Type;

  static constexpr bool kTimed = requires(Native& n, const typename Native::Mark& m) { n.elapsed(m, m); };
  static constexpr bool kMapped = requires(Native& n, const Memory& m) { n.map(m); };

  // `operators` must outlive the device.
  QueueDevice(std::shared_ptr<OpenNative<Native>> open, const bp_device_info& info,
              const Operators<Operator>& operators)
      : info_(info), open_(std::move(open)), native_(open_->native.get()), operators_(operators) {}
  // Takes ownership of a native device that no other QueueDevice shares.
  QueueDevice(std::unique_ptr<Native> native, const bp_device_info& info, const Operators<Operator>& operators)
      : QueueDevice(opened(std::move(native)), info, operators) {}
  static std::shared_ptr<OpenNative<Native>> opened(std::unique_ptr<Native> native) {
    auto out = std::make_shared<OpenNative<Native>>();
    out->native = std::move(native);
    return out;
  }

  Status memory_info(uint32_t kind, bp_memory_info& out) {
    Status status = check_kind(info_.memory_kinds, kind);
    if (status.ok()) status = health_of(*native_);
    if (!status.ok()) return status;
    return native_->memory_info(kind, out);
  }
  Result<Buffer*> create_buffer(bp_buffer_desc desc) {
    return create_with(desc, [&] { return native_->allocate(desc); });
  }
  bool imports() const
    requires requires(const Native& n) { n.imports(); }
  {
    return native_->imports();
  }
  Result<Buffer*> import_memory(const bp_import_desc& desc, uint32_t& kind)
    requires requires(Native& n, const bp_import_desc& d, uint32_t& k) { n.import_memory(d, k); }
  {
    if (Status status = health_of(*native_); !status.ok()) return status;
    auto buffer = std::make_unique<Buffer>();
    auto memory = native_->import_memory(desc, kind);
    if (!memory.ok()) return memory.status();
    *buffer = {std::move(memory.value()), desc.bytes, kind};
    return buffer.release();
  }
  void destroy(Buffer* buffer) {
    native_->free(buffer->memory);
    delete buffer;
  }
  Result<void*> map(const Buffer& buffer) {
    if constexpr (kMapped) {
      if (buffer.kind != BP_MEMORY_DEVICE) {
        if (Status status = health_of(*native_); !status.ok()) return status;
        return static_cast<void*>(native_->map(buffer.memory));
      }
    }
    return no_host_address();
  }
  Result<uint64_t> address(const Buffer& buffer) const
    requires requires(const Native& n, const Memory& m) { n.address(m); }
  {
    return native_->address(buffer.memory);
  }

  Result<bp_native_handle> device_native(uint32_t index)
    requires requires(Native& n) { n.device_handle(0u); }
  {
    if (Status status = health_of(*native_); !status.ok()) return status;
    return native_->device_handle(index);
  }
  Result<bp_native_handle> native(Stream& stream)
    requires requires(Native& n, typename Native::Queue& q) { n.handle(q); }
  {
    if (Status status = stream.failure(); !status.ok()) return status;
    return native_->handle(stream.share_queue());
  }
  Result<bp_native_handle> native(const Buffer& buffer)
    requires requires(Native& n, const Memory& m) { n.handle(m); }
  {
    if (Status status = health_of(*native_); !status.ok()) return status;
    auto handle = native_->handle(buffer.memory);
    if (handle.ok()) handle.value().bytes = buffer.bytes;
    return handle;
  }
  Result<bp_native_handle> native(const Event& event)
    requires requires(Native& n, const typename Native::Mark& m) { n.handle(m); }
  {
    if (event.in_graph()) return recorded_in_graph("event_native");
    const typename Event::Record record = event.latest();
    if (record.stream == nullptr) return invalid_argument("event_native: the event was never recorded; record it");
    const Status status = QueueState<Native>::await(record, 0);
    if (!status.ok() && status.code() != BP_TIMEOUT) return status;
    return native_->handle(record.mark);
  }
  Result<Stream*> wrap_stream(const bp_native_handle& handle)
    requires requires(Native& n, const bp_native_handle& h) { n.wrap_queue(h); }
  {
    if (Status status = health_of(*native_); !status.ok()) return status;
    auto queue = native_->wrap_queue(handle);
    if (!queue.ok()) return queue.status();
    return new Stream(*native_, std::move(queue.value()), order_, true);
  }
  Result<Buffer*> wrap_memory(const bp_native_handle& handle, uint32_t& kind)
    requires requires(Native& n, const bp_native_handle& h, uint32_t& k) { n.wrap_memory(h, k); }
  {
    if (Status status = health_of(*native_); !status.ok()) return status;
    auto buffer = std::make_unique<Buffer>();
    auto memory = native_->wrap_memory(handle, kind);
    if (!memory.ok()) return memory.status();
    *buffer = {std::move(memory.value()), handle.bytes, kind};
    return buffer.release();
  }

  std::span<const ExternalType> external_types() const
    requires requires(const Native& n) { n.external_types(); }
  {
    return native_->external_types();
  }
  Result<Buffer*> create_external(bp_buffer_desc desc, std::string_view type)
    requires requires(Native& n, const bp_buffer_desc& d) { n.allocate_external(d, std::string_view()); }
  {
    return create_with(desc, [&] { return native_->allocate_external(desc, type); });
  }
  Result<bp_external_handle> export_memory(const Buffer& buffer, std::string_view type)
    requires requires(Native& n, const Memory& m) { n.export_memory(m, std::string_view()); }
  {
    if (Status status = health_of(*native_); !status.ok()) return status;
    auto handle = native_->export_memory(buffer.memory, type);
    if (handle.ok()) handle.value().bytes = buffer.bytes;
    return handle;
  }
  Result<Buffer*> import_external(const bp_external_handle& handle, uint32_t& kind)
    requires requires(Native& n, const bp_external_handle& h, uint32_t& k) { n.import_external(h, k); }
  {
    if (Status status = health_of(*native_); !status.ok()) return status;
    auto buffer = std::make_unique<Buffer>();
    auto memory = native_->import_external(handle, kind);
    if (!memory.ok()) return memory.status();
    *buffer = {std::move(memory.value()), handle.bytes, kind};
    return buffer.release();
  }
  Result<Semaphore*> create_semaphore(std::string_view type, uint64_t value)
    requires requires(Native& n) { n.create_semaphore(std::string_view(), uint64_t{}); }
  {
    if (Status status = health_of(*native_); !status.ok()) return status;
    auto made = native_->create_semaphore(type, value);
    if (!made.ok()) return made.status();
    return made.value().release();
  }
  Result<bp_external_handle> export_semaphore(Semaphore& semaphore, std::string_view type)
    requires requires(Native& n, Semaphore& s) { n.export_semaphore(s, std::string_view()); }
  {
    if (Status status = health_of(*native_); !status.ok()) return status;
    return native_->export_semaphore(semaphore, type);
  }
  Result<Semaphore*> import_semaphore(const bp_external_handle& handle)
    requires requires(Native& n, const bp_external_handle& h) { n.import_semaphore(h); }
  {
    if (Status status = health_of(*native_); !status.ok()) return status;
    auto made = native_->import_semaphore(handle);
    if (!made.ok()) return made.status();
    return made.value().release();
  }
  Status signal(Stream* stream, Semaphore& semaphore, uint64_t value)
    requires requires(Native& n, Semaphore& s) { n.signal(s, uint64_t{}); }
  {
    if (stream == nullptr) {
      if (Status status = health_of(*native_); !status.ok()) return status;
      return native_->signal(semaphore, value);
    }
    if (stream->capturing()) return semaphore_in_capture("semaphore_signal");
    return stream->enqueue([&](Native& native, auto& queue) { return native.signal(queue, semaphore, value); });
  }
  Status wait(Stream& stream, Semaphore& semaphore, uint64_t value)
    requires requires(Native& n, typename Native::Queue& q, Semaphore& s) { n.wait(q, s, uint64_t{}); }
  {
    if (stream.capturing()) return semaphore_in_capture("semaphore_wait");
    return stream.enqueue([&](Native& native, auto& queue) { return native.wait(queue, semaphore, value); });
  }
  void destroy(Semaphore* semaphore)
    requires(!std::is_same_v<Semaphore, NoSemaphore>)
  {
    delete semaphore;
  }

  Result<Stream*> create_stream(const bp_stream_desc& desc) {
    if (Status status = health_of(*native_); !status.ok()) return status;
    const DriverGuard guard;
    auto queue = native_->create_queue(desc);
    if (!queue.ok()) return queue.status();
    return new Stream(*native_, std::move(queue.value()), order_);
  }
  void destroy(Stream* stream) { delete stream; }
  Status wait(Stream& stream, uint64_t timeout_ns) {
    return stream.capturing() ? waited_in_capture() : stream.wait(timeout_ns);
  }

  Result<Event*> create_event(uint32_t flags) {
    if (Status status = check_event_flags(flags); !status.ok()) return status;
    const bool timed = (flags & BP_EVENT_TIMING) != 0;
    if (timed && !(kTimed && (info_.capabilities & BP_CAP_TIMING) != 0)) {
      return unsupported("event_create: this device does not support timed events; omit BP_EVENT_TIMING");
    }
    if (Status status = health_of(*native_); !status.ok()) return status;
    return new Event(timed);
  }
  void destroy(Event* event) { delete event; }
  Status record(Event& event, Stream& stream) {
    if (stream.capturing()) {
      event.set({}, stream.capture()->point(stream.lane(), stream.capture()));
      return {};
    }
    auto recorded = stream.record(event.timed());
    if (recorded.ok()) event.set(std::move(recorded.value()));
    return recorded.status();
  }
  Status wait(const Event& event, uint64_t timeout_ns) {
    if (event.in_graph()) return recorded_in_graph("event_wait");
    return QueueState<Native>::await(event.latest(), timeout_ns);
  }
  Status wait_event(Stream& stream, const Event& event) {
    if (event.in_graph()) return join(stream, event.latest_point());
    if (!stream.capturing()) return stream.wait_for(event.latest());
    return event.latest().stream == nullptr ? Status{} : recorded_outside();
  }
  Result<int64_t> elapsed(const Event& begin, const Event& end) {
    if (begin.in_graph() || end.in_graph()) return recorded_in_graph("event_elapsed");
    const typename Event::Record records[] = {begin.latest(), end.latest()};
    for (const auto& record : records) {
      if (record.stream == nullptr || !record.timed) {
        return invalid_argument("event_elapsed: both events must be made with BP_EVENT_TIMING and recorded");
      }
    }
    for (const auto& record : records) {
      const Status status = QueueState<Native>::await(record, 0);
      if (status.code() == BP_TIMEOUT) return Status{BP_NOT_READY, {}};
      if (!status.ok()) return status;
    }
    if constexpr (kTimed) {
      return native_->elapsed(records[0].mark, records[1].mark);
    } else {
      return unsupported("event_elapsed: this device does not support timed events");
    }
  }

  bool graphs() const
    requires RecordsGraphs<Native>
  {
    return native_->graphs();
  }
  Status begin_graph(Stream& stream, std::span<const bp_graph_binding> bindings)
    requires RecordsGraphs<Native>
  {
    if (stream.capturing()) return captures_already();
    if (Status status = stream.failure(); !status.ok()) return status;
    auto work = std::make_shared<QueueWork<Native>>();
    for (const bp_graph_binding& binding : bindings) {
      auto range = range_of("graph_begin", binding);
      if (!range.ok()) return range.status();
      work->recorded.push_back(range.value());
    }
    work->launched = work->recorded;
    auto graph = native_->begin_graph(std::span<const Range>(work->recorded));
    if (!graph.ok()) return graph.status();
    work->native = std::move(graph.value());
    stream.join(std::make_shared<QueueCapture<Native>>(std::move(work)), 0);
    return {};
  }
  Result<Graph*> end_graph(Stream& stream, bp_graph_info& info)
    requires RecordsGraphs<Native>
  {
    if (!stream.capturing() || stream.lane() != 0) return captures_nothing();
    info.nodes = stream.capture()->commands();
    auto out = std::make_unique<Graph>(Graph{stream.capture()->end()});
    if (out->work == nullptr) return not_joined();
    if (Status status = stream.failure(); !status.ok()) return status;
    const DriverGuard guard;
    if (Status status = native_->end_graph(*out->work->native); !status.ok()) return status;
    return out.release();
  }
  Status launch(Stream& stream, Graph& graph, std::span<const bp_graph_binding> bindings)
    requires RecordsGraphs<Native>
  {
    if (stream.capturing()) return launched_in_capture();
    QueueWork<Native>& work = *graph.work;
    for (std::size_t i = 0; i < bindings.size(); ++i) {
      auto range = range_of("graph_launch", bindings[i]);
      if (!range.ok()) return range.status();
      const Range &given = range.value(), &recorded = work.recorded[i];
      Status status = check_replacement(i, given.bytes, given.kind, recorded.bytes, recorded.kind);
      if (!status.ok()) return status;
      work.launched[i] = given;
    }
    if (bindings.empty()) work.launched = work.recorded;
    return stream.launch(graph.work);
  }
  std::size_t binding_count(const Graph& graph) const { return graph.work->recorded.size(); }
  void destroy(Graph* graph) { delete graph; }

  Status copy(Stream& stream, const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
              uint64_t bytes) {
    Status status = check_span("destination", dst.bytes, dst_offset, bytes);
    if (status.ok()) status = check_span("source", src.bytes, src_offset, bytes);
    if (status.ok()) status = check_kinds_of_copy(dst.kind, src.kind);
    if (status.ok() && &dst == &src) status = check_no_overlap(dst_offset, src_offset, bytes);
    return enqueue_copy(stream, status, bytes, [&](Native& native, auto& queue) {
      return native.copy(queue, dst.memory, dst_offset, src.memory, src_offset, bytes);
    });
  }
  Status copy_in(Stream& stream, const Buffer& dst, uint64_t dst_offset, const void* src, uint64_t bytes)
    requires requires(Native& n, typename Native::Queue& q, const Memory& m, const void* p) {
      n.copy_in(q, m, 0, p, 0);
    }
  {
    Status status = check_span("destination", dst.bytes, dst_offset, bytes);
    if (status.ok()) status = check_host_pointer(src, bytes);
    return enqueue_copy(stream, status, bytes, [&](Native& native, auto& queue) {
      return native.copy_in(queue, dst.memory, dst_offset, src, bytes);
    });
  }
  Status copy_out(Stream& stream, void* dst, const Buffer& src, uint64_t src_offset, uint64_t bytes)
    requires requires(Native& n, typename Native::Queue& q, const Memory& m, void* p) { n.copy_out(q, p, m, 0, 0); }
  {
    Status status = check_span("source", src.bytes, src_offset, bytes);
    if (status.ok()) status = check_host_pointer(dst, bytes);
    return enqueue_copy(stream, status, bytes, [&](Native& native, auto& queue) {
      return native.copy_out(queue, dst, src.memory, src_offset, bytes);
    });
  }

  Status create_plan(const bp_op_desc* given, Plan** out, bp_plan_info& info) {
    CheckedDesc checked;
    Status status = check_desc(given, checked);
    if (status.ok()) status = create_checked(checked, out, info);
    return status.ok() || status.op() != 0 ? status : std::move(status).with_op(checked.desc.op);
  }
  void destroy(Plan* plan) { delete plan; }
  Status execute(Stream& stream, const Plan& plan, const bp_execution* execution) {
    Status status = stream.execute(plan, execution);
    return status.ok() || status.op() != 0 ? status : std::move(status).with_op(plan.op->id);
  }
  Result<uint64_t> workspace(const Plan& plan, const bp_op_desc* given) const
    requires requires(const Native& n, const Program& p, const bp_op_desc& d) { n.workspace(p, d); }
  {
    bp_op_desc desc;
    if (Status status = read_input(given, BP_OP_DESC_MIN_SIZE, "bp_op_desc", desc); !status.ok()) return status;
    if (Status status = detail::check_class(plan, desc); !status.ok()) return status;
    return plan.sized_workspace ? native_->workspace(*plan.program, desc) : plan.workspace_bytes;
  }

 private:
  using SharedProgram = std::shared_ptr<const Program>;
  using Range = QueueRange<Memory>;

  static Result<Range> range_of(const char* slot, const bp_graph_binding& binding) {
    const Buffer& buffer = detail::queue_buffer<Memory>(binding.buffer);
    if (Status status = check_binding(slot, buffer.bytes, binding); !status.ok()) return status;
    return Range{buffer.memory, binding.offset, binding.bytes, buffer.kind};
  }
  // Makes a stream wait for a point of a capture. The stream joins the capture.
  static Status join(Stream& stream, const typename Event::Point& point) {
    if (!point.capture->active()) return recorded_in_graph("stream_wait_event");
    if (Status status = stream.failure(); !status.ok()) return status;
    if (stream.capturing() && stream.capture() != point.capture) return captures_another();
    if (!stream.capturing()) stream.join(point.capture, point.capture->add_lane());
    stream.capture()->wait(stream.lane(), point);
    return {};
  }

  // Creates a buffer of the memory that `allocate()` returns. Sets the default alignment in `desc` first.
  template <class Allocate>
  Result<Buffer*> create_with(bp_buffer_desc& desc, const Allocate& allocate) {
    if (desc.alignment == 0) desc.alignment = info_.alignment;
    Status status = check_buffer(desc, desc.alignment, info_.memory_kinds, max_alignment());
    if (status.ok()) status = health_of(*native_);
    if (!status.ok()) return status;
    auto buffer = std::make_unique<Buffer>();
    auto memory = allocate();
    if (!memory.ok()) return memory.status();
    *buffer = {std::move(memory.value()), desc.bytes, desc.kind};
    return buffer.release();
  }

  uint64_t max_alignment() const {
    if constexpr (requires { Native::kMaxAlignment; }) return Native::kMaxAlignment;
    return info_.alignment;
  }

  template <class Body>
  static Status enqueue_copy(Stream& stream, const Status& checked, uint64_t bytes, const Body& body) {
    if (!checked.ok()) return checked;
    if (bytes == 0) return stream.failure();
    return stream.enqueue(body);
  }

  Status create_checked(const CheckedDesc& checked, Plan** out, bp_plan_info& info) {
    const Operator* op = operators_.find(checked.desc.op, checked.dtypes, checked.mixed);
    if (op == nullptr) return no_kernel(operators_, checked);
    if ((checked.desc.flags & BP_OP_FLAG_DEVICE_SCALARS) != 0 && !op->device_scalars) {
      return unsupported(checked.op->name,
                         ": this device does not read scalars from device memory; omit DEVICE_SCALARS");
    }
    PlanNeeds needs = common_needs(checked, op->dense);
    needs.workspace_bytes = op->workspace_bytes;
    if constexpr (requires { native_->prepare(op->kernel, checked, needs); }) {
      if (Status status = native_->prepare(op->kernel, checked, needs); !status.ok()) return status;
    }
    auto plan = std::make_unique<Plan>();
    if (Status status = make_form(checked, needs, *plan, info); !status.ok()) return status;
    bool deterministic = (info_.capabilities & BP_CAP_DETERMINISTIC) != 0;
    if constexpr (requires { native_->is_deterministic(op->kernel, checked); }) {
      deterministic = deterministic && native_->is_deterministic(op->kernel, checked);
    }
    if (deterministic) info.flags |= BP_PLAN_DETERMINISTIC;
    if (out == nullptr) return {};
    if (Status status = health_of(*native_); !status.ok()) return status;
    const detail::GuardOf<Native> guard;
    auto program = program_of(*op, checked, *plan);
    if (!program.ok()) return program.status();
    plan->program = std::move(program.value());
    *out = plan.release();
    return {};
  }

  // Returns the program of an operator, and compiles it if necessary. Threads that need the same program wait for one
  // compilation. Other threads continue.
  Result<SharedProgram> program_of(const Operator& op, const CheckedDesc& checked, const PlanForm& form) {
    const auto shared = [](Result<Program> made) -> Result<SharedProgram> {
      if (!made.ok()) return made.status();
      return std::make_shared<const Program>(std::move(made.value()));
    };
    if constexpr (requires { native_->compile(op.kernel); }) {
      typename OpenNative<Native>::Common* common = nullptr;
      {
        std::lock_guard lock(open_->mutex);
        common = &open_->programs[{checked.desc.op, checked.dtypes.first, checked.dtypes.second}];
      }
      std::lock_guard lock(common->mutex);
      if (common->program != nullptr) return common->program;
      auto made = shared(native_->compile(op.kernel));
      if (made.ok()) common->program = made.value();
      return made;
    } else {
      return shared(native_->compile(op.kernel, checked, form));
    }
  }

  const bp_device_info info_;
  const std::shared_ptr<OpenNative<Native>> open_;
  Native* const native_;  // the native device of open_
  const Operators<Operator>& operators_;
  std::recursive_mutex order_;  // passed as `order` to every QueueState of this device
};

// A ready-made driver whose devices are QueueDevices. Derive from it and add operators in the
// constructor.
template <class Native>
class QueueDriver {
 public:
  using Device = QueueDevice<Native>;

  QueueDriver(Host host, Identity identity) : host_(host), identity_(identity) {}

  const Identity& identity() const { return identity_; }
  Result<uint32_t> device_count() const {
    const StartGuard guard;
    return Native::count();
  }
  Status device_info(uint32_t index, bp_device_info& info) const {
    const StartGuard guard;
    info.alignment = 256;
    info.memory_kinds = 1u << BP_MEMORY_DEVICE;
    info.type = BP_DEVICE_OTHER;
    std::strncpy(info.driver, text(identity_.name, " ", identity_.version).c_str(), sizeof(info.driver) - 1);
    Status status = Native::info(index, info);
    if (Device::kTimed) info.capabilities |= BP_CAP_TIMING;
    return status;
  }
  // `options` is "key=value;key=value". The default implementation accepts no option.
  Result<Device*> open(uint32_t index, std::string_view options) const {
    if (Status status = check_no_options(identity_.name, options); !status.ok()) return status;
    bp_device_info info{};
    if (Status status = device_info(index, info); !status.ok()) return status;
    const StartGuard guard;
    auto opened = open_native(index);
    if (!opened.ok()) return opened.status();
    // A native device may be one that was open before, or share the state of such a device.
    if (const Status status = health_of(*opened.value()->native); !status.ok()) {
      return Status{BP_UNAVAILABLE,
                    text(identity_.name, ": device ", index, " has failed earlier: ", status.message(),
                         "; restart the process to open the device again"),
                    status.vendor_code()};
    }
    return new Device(std::move(opened.value()), info, operators_);
  }

 protected:
  using Operator = typename Device::Operator;
  Operators<Operator>& operators() { return operators_; }
  const Host& host() const { return host_; }

 private:
  using Opened = std::shared_ptr<OpenNative<Native>>;

  // The caller holds a StartGuard.
  Result<Opened> open_native(uint32_t index) const {
    constexpr bool kStays = requires { Native::kStaysOpen; };
    // Never destroyed, because a driver may already be unloaded when static objects are destroyed.
    static auto* const all = new std::map<uint32_t, Opened>;
    if (const auto found = all->find(index); found != all->end()) return found->second;
    auto native = Native::open(index, host_);
    if (!native.ok()) return native.status();
    auto opened = Device::opened(std::move(native.value()));
    if (kStays) (*all)[index] = opened;
    return opened;
  }

  Host host_;
  Identity identity_;
  Operators<Operator> operators_;
};

}  // namespace backplane::kit
