// SPDX-License-Identifier: Apache-2.0
// A device that is not the host, over a small native interface: an in-order queue with memory of its own. Streams, events, failures,
// timeouts, lifetimes and checks are the kit's. A plugin is a class `Native` and one line:
//
//   class Driver : public backplane::kit::QueueDriver<Native> { ... add operators in the constructor ... };
//
// Native has these types:
//   Memory    handle of an allocation: a small value, as a pointer, an id or an address
//   Queue     an in-order queue; one call at a time
//   Mark      a point in a queue: default-constructed and copied freely, ended with its last copy
//   Kernel    an operator as the plugin registers it: a source, an entry point, an object of its own
//   Program   a kernel that is ready to be launched; used by many threads at once
//
// and these members. Those of a device are called from any thread at once, unless a queue is among the arguments.
//   static Result<uint32_t> count();                       devices, in a fixed order
//   static Status info(uint32_t index, bp_device_info&);   of a device that is not open
//   static Result<std::unique_ptr<Native>> open(uint32_t index, const Host&);
//   Status memory_info(uint32_t kind, bp_memory_info&);
//   Result<Memory> allocate(const bp_buffer_desc&);        checked; `alignment` is never 0
//   void free(const Memory&);
//   Result<std::unique_ptr<Queue>> create_queue(const bp_stream_desc&);
//   Result<Mark> mark(Queue&, bool timed);                 submits; behind all that was enqueued
//   Status poll(const Mark&);                              OK passed; TIMEOUT not yet; else the failure of work before it, told
//                                                          once nothing before it touches memory
//   Status wait_for(Queue&, const Mark&);                  later work of this queue starts behind the mark; the host does not wait
//   Status copy(Queue&, Memory dst, uint64_t dst_offset, Memory src, uint64_t src_offset, uint64_t bytes);
//   Result<Program> compile(const Kernel&, const CheckedDesc&, const PlanForm&);
//     or compile(const Kernel&), where nothing else matters: the kit compiles once for each open device and operator
//   Status launch(Queue&, const Program&, const QueueCall<Memory>&);
// mark, wait_for, copy and launch enqueue whole or nothing. A call that has enqueued only a part returns
// EXECUTION_FAILED, and the stream fails. None waits for the device.
//
// Native may have these too:
//   Status wait(const Mark&, uint64_t timeout_ns);         as poll, waiting so long; without it the kit polls
//   void* map(const Memory&);                              needed for memory of the kinds HOST and SHARED
//   Status copy_in(Queue&, Memory, uint64_t offset, const void*, uint64_t bytes); Status copy_out(Queue&, void*, Memory, ...);
//                                                          needed without HOST memory
//   Result<int64_t> elapsed(const Mark&, const Mark&);     nanoseconds between timed marks that have passed: BP_CAP_TIMING
//   uint64_t address(const Memory&);                       the slot buffer_address
//   Status prepare(const Kernel&, const CheckedDesc&, PlanNeeds&);   may decline, stage more, ask for workspace; compiles nothing
//   uint64_t workspace(const Program&, const bp_op_desc&); for plans whose needs have sized_workspace
//   Status health() const;                                 the device's failure, which every call is answered with from then on
//   Result<Memory> import_memory(const bp_import_desc&, uint32_t& kind); bool imports() const;
//                                                          "bp.import": memory of another's, and whether this device takes any
//   static constexpr uint64_t kMaxAlignment;               of buffers; without it the device's own
//   static constexpr bool kWaitsForPassed = true;          wait_for is called for marks that have passed, too: where only a wait
//                                                          lets this queue see what another wrote
//   static constexpr bool kProgramsStay = true;            what a launch uses of a program outlives it: streams keep none
//   static constexpr bool kStaysOpen = true;               one Native of each index serves the process, with its compiled kernels: for
//                                                          drivers that leak, or take long, when a device is opened again. It
//                                                          outlives the Host of its open
#pragma once

#include <backplane/kit/plugin.hpp>
#include <backplane/kit/queue_stream.hpp>
#include <map>

namespace backplane::kit {

// An operator of a queue device.
template <class Kernel>
struct QueueOperator {
  Kernel kernel;
  bool dense = true;  // takes packed operands only, and no immediates: core stages others, by the operator copy
  bool device_scalars = false;  // takes BP_OP_FLAG_DEVICE_SCALARS
  uint64_t workspace_bytes = 0;
  uint32_t mixed = 0;  // rules::Mixed: which operands may have another dtype
};

// A native device, with the programs that are for all plans of an operator.
template <class Native>
struct OpenNative {
  using Program = std::shared_ptr<const typename Native::Program>;
  struct Common {
    std::mutex mutex;  // held while it is compiled
    Program program;
  };

  std::unique_ptr<Native> native;
  std::mutex mutex;
  std::map<std::array<uint32_t, 3>, Common> programs;  // by operator and dtypes
};

// Implements what DeviceTable (device_table.hpp) asks of a device.
template <class Native>
class QueueDevice {
  using Memory = typename Native::Memory;
  using Program = typename Native::Program;

 public:
  using Buffer = QueueBuffer<Memory>;
  using Event = QueueEvent<Native>;
  using Plan = QueuePlan<Native>;
  using Stream = QueueStream<Native>;
  using Operator = QueueOperator<typename Native::Kernel>;

  static constexpr bool kTimed = requires(Native& n, const typename Native::Mark& m) { n.elapsed(m, m); };
  static constexpr bool kMapped = requires(Native& n, const Memory& m) { n.map(m); };

  // `operators` outlives the device.
  QueueDevice(std::shared_ptr<OpenNative<Native>> open, const bp_device_info& info,
              const Operators<Operator>& operators)
      : info_(info), open_(std::move(open)), native_(open_->native.get()), operators_(operators) {}
  // Of a native device that no other open shares.
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
    if (desc.alignment == 0) desc.alignment = info_.alignment;
    Status status = check_buffer(desc, desc.alignment, info_.memory_kinds, max_alignment());
    if (status.ok()) status = health_of(*native_);
    if (!status.ok()) return status;
    auto buffer = std::make_unique<Buffer>();
    auto memory = native_->allocate(desc);
    if (!memory.ok()) return memory.status();
    *buffer = {std::move(memory.value()), desc.bytes, desc.kind};
    return buffer.release();
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

  Result<Stream*> create_stream(const bp_stream_desc& desc) {
    if (Status status = health_of(*native_); !status.ok()) return status;
    const DriverGuard guard;
    auto queue = native_->create_queue(desc);
    if (!queue.ok()) return queue.status();
    return new Stream(*native_, std::move(queue.value()), order_);
  }
  void destroy(Stream* stream) { delete stream; }
  Status wait(Stream& stream, uint64_t timeout_ns) { return stream.wait(timeout_ns); }

  Result<Event*> create_event(uint32_t flags) {
    if (Status status = check_event_flags(flags); !status.ok()) return status;
    const bool timed = (flags & BP_EVENT_TIMING) != 0;
    if (timed && !(kTimed && (info_.capabilities & BP_CAP_TIMING) != 0)) {
      return unsupported("event_create: this device times no events; leave BP_EVENT_TIMING out");
    }
    if (Status status = health_of(*native_); !status.ok()) return status;
    return new Event(timed);
  }
  void destroy(Event* event) { delete event; }
  // A record on a failed stream stands for the failure, so that those who wait on it learn of it.
  Status record(Event& event, Stream& stream) {
    typename Event::Record next;
    Status status = stream.record(event.timed(), next);
    if (status.ok() || next.failed) event.set(std::move(next));
    return status;
  }
  Status wait(const Event& event, uint64_t timeout_ns) { return QueueState<Native>::await(event.latest(), timeout_ns); }
  Status wait_event(Stream& stream, const Event& event) { return stream.wait_for(event.latest()); }
  Result<int64_t> elapsed(const Event& begin, const Event& end) {
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
      return unsupported("event_elapsed: this device times no events");
    }
  }

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
    return plan.sized_workspace ? native_->workspace(*plan.program, desc) : plan.workspace_bytes;
  }

 private:
  using SharedProgram = std::shared_ptr<const Program>;

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
      return unsupported(checked.op->name, ": this device reads no scalars from its memory; leave DEVICE_SCALARS out");
    }
    PlanNeeds needs = common_needs(checked, op->dense);
    needs.workspace_bytes = op->workspace_bytes;
    if constexpr (requires { native_->prepare(op->kernel, checked, needs); }) {
      if (Status status = native_->prepare(op->kernel, checked, needs); !status.ok()) return status;
    }
    auto plan = std::make_unique<Plan>();
    if (Status status = make_form(checked, needs, *plan, info); !status.ok()) return status;
    if ((info_.capabilities & BP_CAP_DETERMINISTIC) != 0) info.flags |= BP_PLAN_DETERMINISTIC;
    if (out == nullptr) return {};
    if (Status status = health_of(*native_); !status.ok()) return status;
    const DriverGuard guard;
    auto program = program_of(*op, checked, *plan);
    if (!program.ok()) return program.status();
    plan->program = std::move(program.value());
    *out = plan.release();
    return {};
  }

  // Threads that want one operator's program at once wait for one compilation; others go on.
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
  Native* const native_;  // of open_
  const Operators<Operator>& operators_;
  std::recursive_mutex order_;  // see QueueState
};

// A ready-made driver whose devices are QueueDevices. Derive from it and add operators in the constructor.
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
  // `options` is "key=value;key=value"; there are none by default.
  Result<Device*> open(uint32_t index, std::string_view options) const {
    if (Status status = check_no_options(identity_.name, options); !status.ok()) return status;
    bp_device_info info{};
    if (Status status = device_info(index, info); !status.ok()) return status;
    const StartGuard guard;
    auto opened = open_native(index);
    if (!opened.ok()) return opened.status();
    return new Device(std::move(opened.value()), info, operators_);
  }

 protected:
  using Operator = typename Device::Operator;
  Operators<Operator>& operators() { return operators_; }
  const Host& host() const { return host_; }

 private:
  using Opened = std::shared_ptr<OpenNative<Native>>;

  // Under a StartGuard.
  Result<Opened> open_native(uint32_t index) const {
    constexpr bool kStays = requires { Native::kStaysOpen; };
    static auto* const all = new std::map<uint32_t, Opened>;  // never destroyed: drivers may have ended before exit
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
