// SPDX-License-Identifier: Apache-2.0
#include "runtime/device.hpp"

#include <backplane/kit/native.hpp>
#include <cmath>
#include <map>

#include "ops/operators.hpp"

namespace backplane::vulkan {

namespace {

// Returns whether every operand is dense or an immediate. If so, kernels need no strides, because
// the kit checks that every execution matches the plan.
bool all_dense(const kit::PlanForm& plan) {
  return std::ranges::all_of(plan.operands, [](const kit::Operand& each) {
    return each.dtype == 0 || each.dense || (each.flags & BP_DESC_IMMEDIATE) != 0;
  });
}

// Returns the value of a handle, which is a pointer or, on some platforms, a number.
template <class Handle>
uint64_t value_of(Handle handle) {
  if constexpr (std::is_pointer_v<Handle>) {
    return reinterpret_cast<uintptr_t>(handle);
  } else {
    return handle;
  }
}

}  // namespace

kit::Result<std::shared_ptr<Native::Shared>> Native::shared(const std::shared_ptr<const Instance>& instance,
                                                            uint32_t index, const Log& log) {
  // The mutex and the map are never destroyed, so that no destructor runs at exit.
  static auto* const mutex = new std::mutex;
  static auto* const kept = new std::map<uint32_t, std::shared_ptr<Shared>>;
  std::lock_guard lock(*mutex);
  std::shared_ptr<Shared>& entry = (*kept)[index];
  if (entry != nullptr && !entry->logical->lost()) return entry;
  auto logical = LogicalDevice::create(instance, index);
  if (!logical.ok()) return logical.status();
  LogicalDevice& device = *logical.value();
  entry.reset(new Shared{
      .logical = std::move(logical.value()), .memory = vulkan::Memory(device), .pipelines = Pipelines(device, log)});
  if (kit::Status status = add_operators(entry->operators, device.physical()); !status.ok()) {
    entry.reset();
    return status;
  }
  return entry;
}

kit::Result<std::unique_ptr<Native>> Native::open(const std::shared_ptr<const Instance>& instance, uint32_t index,
                                                  Log log) {
  auto found = shared(instance, index, log);
  if (!found.ok()) return found.status();
  return std::unique_ptr<Native>(new Native(found.value(), std::move(log)));
}

Native::Native(std::shared_ptr<Shared> shared, Log log)
    : shared_(std::move(shared)),
      logical_(*shared_->logical),
      external_{kExternalType, logical_.physical().external},
      memory_(shared_->memory),
      log_(std::move(log)) {
  shared_->natives.fetch_add(1);
}

Native::~Native() {
  try {
    shared_->pipelines.cache().save(log_);
  } catch (const std::bad_alloc&) {  // without memory, the pipeline cache is not saved
  }
  if (shared_->natives.fetch_sub(1) == 1) memory_.destroy_empty_blocks();
}

uint32_t Native::memory_kinds() const {
  uint32_t kinds = 0;
  for (uint32_t kind = 0; kind < BP_MEMORY_KINDS; ++kind) {
    if (logical_.memory_type(kind) >= 0) kinds |= 1u << kind;
  }
  return kinds;
}

kit::Result<bp_native_handle> Native::device_handle(uint32_t index) const {
  switch (index) {
    case 0:
      return kit::native_handle("vulkan.instance", value_of(logical_.instance().handle()));
    case 1:
      return kit::native_handle("vulkan.physical_device", value_of(logical_.physical().handle));
    case 2:
      return kit::native_handle("vulkan.device", value_of(logical_.handle()));
    case 3:
      return kit::native_handle("vulkan.queue_family", logical_.first_queue().family);
    case 4:
      return kit::native_handle("vulkan.queue", value_of(logical_.first_queue().handle));
    default:
      return kit::unsupported("device_native: index ", index, " is past the last handle, 4");
  }
}

kit::Status Native::check_type(std::string_view type, uint32_t flag) const {
  kit::Status status = kit::check_external_type(type, kExternalType);
  if (!status.ok() || (external_.flags & flag) != 0) return status;
  return kit::unsupported("the driver lacks the operation ", flag, " of the external type ", kExternalType,
                          "; external_type lists the operations");
}

kit::Status Native::check_handle(const bp_external_handle& handle, uint32_t flag) const {
  kit::Status status = kit::check_external_handle(handle, kExternalType, logical_.physical().uuid);
  return status.ok() ? check_type(kExternalType, flag) : status;
}

kit::Result<bp_native_handle> Native::handle(const Memory& memory) const {
  bp_native_handle out = kit::native_handle("vulkan.buffer", value_of(memory->handle));
  out.offset = memory->offset;
  return out;
}

kit::Result<bp_native_handle> Native::handle(const Mark& mark) const {
  bp_native_handle out = kit::native_handle("vulkan.timeline_semaphore", value_of(mark.point.timeline->semaphore()));
  out.offset = mark.point.value;
  return out;
}

kit::Result<Native::Mark> Native::mark(Stream& stream, bool timed) {
  Mark mark;
  if (timed) {
    auto pool = logical_.take_query();
    if (!pool.ok()) return pool.status();
    mark.stamp = std::make_shared<Stamp>(logical_, pool.value());
  }
  auto point = stream.mark(mark.stamp);
  if (!point.ok()) return point.status();
  mark.point = std::move(point.value());
  return mark;
}

kit::Result<int64_t> Native::elapsed(const Mark& begin, const Mark& end) {
  uint64_t ticks[2] = {};
  const VkQueryPool pools[] = {begin.stamp->pool(), end.stamp->pool()};
  for (int i = 0; i < 2; ++i) {
    const VkResult result = logical_.api().vkGetQueryPoolResults(logical_.handle(), pools[i], 0, 1, sizeof(ticks[i]),
                                                                 &ticks[i], sizeof(ticks[i]), VK_QUERY_RESULT_64_BIT);
    if (kit::Status status = logical_.check(result, "vkGetQueryPoolResults"); !status.ok()) return status;
  }
  const uint32_t unused = 64 - logical_.physical().timestamp_bits;  // number of invalid high bits in a timestamp
  const int64_t difference = static_cast<int64_t>((ticks[1] - ticks[0]) << unused) >> unused;
  return std::llround(static_cast<double>(difference) * double{logical_.physical().properties.limits.timestampPeriod});
}

kit::Result<Program> Native::compile(const Kernel& op, const kit::CheckedDesc&, const kit::PlanForm& plan) {
  Program program{.op = op, .dense = all_dense(plan)};
  const Kernels kernels = op->kernels(plan, program.dense);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const vulkan::Kernel& kernel = kernels[i];
    if (kernel.shader.empty()) continue;
    auto pipeline = shared_->pipelines.get(kernel.shader, kernel.constants);
    if (pipeline.ok()) {
      program.pipelines[i] = pipeline.value();
    } else if (!kernel.optional || logical_.lost()) {
      return pipeline.status();
    } else {
      log_(BP_LOG_WARNING, kit::text("vulkan: ", kernel.shader,
                                     " was not compiled, so slower kernels replace it: ", pipeline.status().message()));
    }
  }
  return program;
}

kit::Status Native::launch(Stream& stream, const Program& program, const Call& call) const {
  const uint64_t before = stream.enqueued();
  kit::Status status = program.op->enqueue(stream, program, call);
  return status.ok() || stream.enqueued() == before ? status : work_is_lost(status);
}

kit::Result<Device*> open_device(const std::shared_ptr<const Instance>& instance, uint32_t index, Log log) {
  auto native = Native::open(instance, index, std::move(log));
  if (!native.ok()) return native.status();
  bp_device_info info{};
  instance->devices()[index].describe(info);
  info.memory_kinds = native.value()->memory_kinds();
  const Operators& operators = native.value()->operators();  // the Native keeps the operators alive
  return new Device(std::move(native.value()), info, operators);
}

}  // namespace backplane::vulkan
