// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include <cmath>
#include <map>

#include "nest.hpp"

namespace backplane::vulkan {

namespace {

kit::Status check_span(const char* role, const Buffer& buffer, uint64_t offset, uint64_t bytes) {
  if (offset <= buffer.bytes && bytes <= buffer.bytes - offset) return {};
  return kit::invalid_argument("copy: ", bytes, " bytes at ", offset, " reach past the ", role, ", which has ",
                               buffer.bytes);
}

// The kit holds every execution to what it saw when it made the plan.
bool all_packed(const kit::Plan& plan) {
  return std::ranges::all_of(plan.operands, [](const kit::Operand& each) {
    return each.dtype == 0 || each.dense || (each.flags & BP_DESC_IMMEDIATE) != 0;
  });
}

kit::Span span_of(bp_buffer* buffer) { return reinterpret_cast<Buffer*>(buffer)->span(); }

}  // namespace

kit::Result<std::shared_ptr<Device::Shared>> Device::shared(const std::shared_ptr<const Instance>& instance,
                                                            uint32_t index, const Log& log) {
  // Never destroyed: no work at exit.
  static auto* const mutex = new std::mutex;
  static auto* const kept = new std::map<uint32_t, std::shared_ptr<Shared>>;
  std::lock_guard lock(*mutex);
  std::shared_ptr<Shared>& entry = (*kept)[index];
  if (entry != nullptr && !entry->logical->lost()) return entry;
  auto logical = LogicalDevice::create(instance, index);
  if (!logical.ok()) return logical.status();
  LogicalDevice& device = *logical.value();
  entry.reset(new Shared{.logical = std::move(logical.value()), .pipelines = Pipelines(device, log)});
  if (kit::Status status = add_operators(entry->kernels, device.physical()); !status.ok()) {
    entry.reset();
    return status;
  }
  return entry;
}

kit::Result<Device*> Device::open(const std::shared_ptr<const Instance>& instance, uint32_t index, Log log) {
  auto found = shared(instance, index, log);
  if (!found.ok()) return found.status();
  return new Device(found.value(), std::move(log));
}

Device::Device(std::shared_ptr<Shared> shared, Log log)
    : shared_(std::move(shared)), logical_(*shared_->logical), memory_(logical_), log_(std::move(log)) {}

Device::~Device() {
  try {
    shared_->pipelines.cache().save(log_);
  } catch (const std::bad_alloc&) {  // the cache is not written
  }
}

kit::Result<void*> Device::map(const Buffer& buffer) const {
  if (buffer.mapped == nullptr) {
    return kit::unsupported("buffer_map: memory of kind DEVICE has no host address; copy, or use HOST or SHARED");
  }
  if (kit::Status status = logical_.health(); !status.ok()) return status;
  return static_cast<void*>(buffer.mapped);
}

kit::Result<Event*> Device::create_event(uint32_t flags) const {
  if ((flags & ~BP_EVENT_TIMING) != 0)
    return kit::unsupported("event_create: the flags ", flags, " hold an unknown bit");
  const bool timed = (flags & BP_EVENT_TIMING) != 0;
  if (timed && logical_.physical().timestamp_bits == 0) {
    return kit::unsupported("event_create: queues of ", logical_.physical().properties.deviceName,
                            " take no timestamps, so events have no TIMING");
  }
  if (kit::Status status = logical_.health(); !status.ok()) return status;
  return new Event(timed);
}

kit::Status Device::record(Event& event, Stream& stream) {
  Event::Record next{{}, nullptr, true};
  if (event.timed() && stream.failure().ok()) {
    auto pool = logical_.take_query();
    if (!pool.ok()) return pool.status();
    next.stamp = std::make_shared<Stamp>(logical_, pool.value());
  }
  auto marked = stream.mark(next.stamp);
  // A record on a failed stream stands for the failure, so that who waits on it learns of it. Otherwise it was not made.
  if (!marked.ok() && stream.failure().ok()) return marked.status();
  next.point = marked.ok() ? marked.value() : stream.never();
  event.set(std::move(next));
  return marked.status();
}

kit::Status Device::wait(const Event& event, uint64_t timeout_ns) const {
  const Event::Record record = event.latest();
  return record.made ? record.point.timeline->wait(record.point.value, timeout_ns) : logical_.health();
}

kit::Status Device::wait_event(Stream& stream, const Event& event) { return stream.wait_for(event.latest().point); }

kit::Result<int64_t> Device::elapsed(const Event& begin, const Event& end) const {
  const Event::Record records[] = {begin.latest(), end.latest()};
  uint64_t ticks[2] = {};
  for (int i = 0; i < 2; ++i) {
    const Event::Record& record = records[i];
    if (!record.made || (record.stamp == nullptr && record.point.value != Timeline::kNever)) {
      return kit::invalid_argument("event_elapsed: both events must be made with BP_EVENT_TIMING and recorded");
    }
    kit::Status status = record.point.timeline->wait(record.point.value, 0);
    if (status.code() == BP_TIMEOUT) return kit::Status{BP_NOT_READY, {}};
    if (!status.ok()) return status;
    status = logical_.check(
        logical_.api().vkGetQueryPoolResults(logical_.handle(), record.stamp->pool(), 0, 1, sizeof(ticks[i]), &ticks[i],
                                             sizeof(ticks[i]), VK_QUERY_RESULT_64_BIT),
        "vkGetQueryPoolResults");
    if (!status.ok()) return status;
  }
  const uint32_t unused = 64 - logical_.physical().timestamp_bits;  // the clock begins anew behind its last bit
  const int64_t difference = static_cast<int64_t>((ticks[1] - ticks[0]) << unused) >> unused;
  return std::llround(static_cast<double>(difference) * double{logical_.physical().properties.limits.timestampPeriod});
}

kit::Status Device::copy(Stream& stream, const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                         uint64_t bytes) {
  if (kit::Status status = check_span("destination", dst, dst_offset, bytes); !status.ok()) return status;
  if (kit::Status status = check_span("source", src, src_offset, bytes); !status.ok()) return status;
  if (dst.kind == BP_MEMORY_HOST && src.kind == BP_MEMORY_HOST) {
    return kit::invalid_argument("copy: from HOST to HOST is the host's own, by memcpy");
  }
  const uint64_t to = dst.address + dst_offset, from = src.address + src_offset;
  if (to < from + bytes && from < to + bytes) {
    return kit::invalid_argument("copy: source and destination overlap over ", bytes, " bytes");
  }
  if (bytes == 0) return stream.failure();
  return stream.copy(dst, dst_offset, src, src_offset, bytes);
}

kit::Status Device::create_plan(const bp_op_desc* desc, Plan** out, bp_plan_info& info) {
  Plan plan;
  if (kit::Status status = kit::make_plan(shared_->kernels, desc, plan.base, info); !status.ok()) return status;
  info.flags |= BP_PLAN_DETERMINISTIC;  // no kernel leaves an order to chance
  if (out == nullptr) return {};
  if (kit::Status status = logical_.health(); !status.ok()) return status;
  plan.packed = all_packed(plan.base);
  const auto& op = *static_cast<const Operator*>(plan.base.state.get());
  std::size_t count = 0;
  for (const Kernel& kernel : op.kernels(plan.base, plan.packed)) {
    VkPipeline& place = plan.pipelines.at(count++);
    if (kernel.shader.empty()) continue;
    auto pipeline = shared_->pipelines.get(kernel.shader, kernel.constants);
    if (pipeline.ok()) {
      place = pipeline.value();
    } else if (!kernel.optional || logical_.lost()) {
      return kit::Status(pipeline.status()).with_op(plan.base.op->id);
    } else {
      log_(BP_LOG_WARNING, kit::text("vulkan: ", kernel.shader, " was not compiled, and slower kernels do its work: ",
                                     pipeline.status().message()));
    }
  }
  *out = new Plan(std::move(plan));
  return {};
}

kit::Status Device::execute(Stream& stream, const Plan& plan, const bp_execution* execution) {
  kit::Status status = stream.failure();
  kit::Call& call = stream.call();
  const uint64_t before = stream.enqueued();
  if (status.ok()) status = kit::bind_call(plan.base, execution, span_of, call);
  if (status.ok()) status = static_cast<const Operator*>(plan.base.state.get())->enqueue(stream, plan, call);
  if (!status.ok() && stream.enqueued() != before) status = stream.fail(status);  // a part of it is enqueued
  return status.ok() || status.op() != 0 ? status : std::move(status).with_op(plan.base.op->id);
}

}  // namespace backplane::vulkan
