// SPDX-License-Identifier: Apache-2.0
// Defects in pools, which have an effect only if many objects or commands are alive.
#include <array>
#include <map>
#include <mutex>
#include <vector>

#include "mutation.hpp"
#include "views.hpp"

namespace backplane::conformance::mutants {
namespace {

// Live objects in order of creation.
template <class Handle>
class Living {
 public:
  void add(Handle* handle) {
    const std::lock_guard lock(mutex_);
    handles_.push_back(handle);
  }
  void remove(Handle* handle) {
    const std::lock_guard lock(mutex_);
    std::erase(handles_, handle);
  }
  // Returns the live object that is `distance` positions before `handle`, or null.
  Handle* before(Handle* handle, std::size_t distance) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find(handles_.begin(), handles_.end(), handle);
    const auto index = static_cast<std::size_t>(found - handles_.begin());
    return found == handles_.end() || index < distance ? nullptr : handles_[index - distance];
  }
  // Returns the live object that is `distance` positions after `handle`, or null. With a defect in a
  // pool, both objects share one entry.
  Handle* after(Handle* handle, std::size_t distance) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find(handles_.begin(), handles_.end(), handle);
    const auto index = static_cast<std::size_t>(found - handles_.begin());
    return found == handles_.end() || handles_.size() - index <= distance ? nullptr : handles_[index + distance];
  }

 private:
  std::mutex mutex_;
  std::vector<Handle*> handles_;
};

// ---- Events

Living<bp_event>& living_events() {
  static auto* events = new Living<bp_event>;
  return *events;
}
template <uint32_t kFlags>
bp_status count_event(bp_device* device, uint32_t flags, bp_event** out, bp_error* error) {
  const bp_status status = kHonest.event_create(device, flags, out, error);
  if (status == BP_OK && (flags & kFlags) == kFlags) living_events().add(*out);
  return status;
}
void uncount_event(bp_device* device, bp_event* event) {
  living_events().remove(event);
  kHonest.event_destroy(device, event);
}
bp_status record_shared(bp_device* device, bp_event* event, bp_stream* stream, bp_error* error) {
  const bp_status status = kHonest.event_record(device, event, stream, error);
  bp_event* const older = status == BP_OK ? living_events().before(event, 64) : nullptr;
  return older == nullptr ? status : kHonest.event_record(device, older, stream, error);
}
bp_status elapsed_shared(bp_device* device, bp_event* begin, bp_event* end, int64_t* out_ns, bp_error* error) {
  const auto owner = [](bp_event* event) {
    bp_event* const younger = living_events().after(event, 64);
    return younger == nullptr || event_of(younger).latest().stamp == nullptr ? event : younger;
  };
  return kHonest.event_elapsed(device, owner(begin), owner(end), out_ns, error);
}

// ---- Pending commands of a stream

bp_status drop_late_waits(bp_device* device, bp_stream* stream, bp_event* event, bp_error* error) {
  static std::mutex mutex;
  static std::map<bp_stream*, std::vector<HostEvent::Record>> waits;
  {
    const std::lock_guard lock(mutex);
    std::vector<HostEvent::Record>& pending = waits[stream];
    std::erase_if(pending, [](const HostEvent::Record& each) { return each.timeline->reached(each.point); });
    if (pending.size() >= 32) return BP_OK;
    const HostEvent::Record record = event_of(event).latest();
    if (record.timeline != nullptr) pending.push_back(record);
  }
  return kHonest.stream_wait_event(device, stream, event, error);
}

// Enqueues an execution after `change` has modified its call.
template <class Change>
bp_status execute_changed(bp_stream* stream, bp_plan* handle, const bp_execution* execution, bp_error* error,
                          const Change& change) {
  const auto& plan = *reinterpret_cast<const Plan*>(handle);
  const Status status = stream_of(stream).enqueue(HostTask::Kind::kCall, [&](HostTask& task) {
    task.kernel = plan.kernel.run;
    Status bound = bind_call(
        plan, execution, [](bp_buffer* buffer) { return buffer_of(buffer).span; }, task.call);
    if (bound.ok()) change(task.call);
    return bound;
  });
  return status.ok() ? BP_OK : report(error, status.code(), status.message());
}

std::atomic<std::size_t> next_slot{0};

bp_status scalars_in_ring(bp_device*, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                          bp_error* error) {
  static std::array<std::array<uint64_t, Call::kMaxScalars>, 64> ring;
  return execute_changed(stream, plan, execution, error, [](Call& call) {
    std::array<uint64_t, Call::kMaxScalars>& slot = ring[next_slot++ % ring.size()];
    for (uint32_t i = 0; i < call.op->scalars_max; ++i) {
      if (call.scalar_at[i] != nullptr) continue;
      slot[i] = call.scalar_bits[i];
      call.scalar_at[i] = reinterpret_cast<const std::byte*>(&slot[i]);
    }
  });
}
bp_status operands_in_ring(bp_device*, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                           bp_error* error) {
  static std::array<std::vector<View>, 16> ring;
  static std::mutex mutex;
  return execute_changed(stream, plan, execution, error, [](Call& call) {
    if (std::any_of(call.inputs.begin(), call.inputs.end(), is_immediate)) return;
    const std::lock_guard lock(mutex);
    std::vector<View>& slot = ring[next_slot++ % ring.size()];
    slot.reserve(16);  // the vector's memory must not move
    slot.assign(call.inputs.begin(), call.inputs.end());
    slot.insert(slot.end(), call.outputs.begin(), call.outputs.end());
    call.outputs = {slot.data() + call.inputs.size(), call.outputs.size()};
    call.inputs = {slot.data(), call.inputs.size()};
  });
}
bp_status staged_in_ring(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, const void* src,
                         uint64_t bytes, bp_error* error) {
  static std::array<std::array<std::byte, 4096>, 64> ring;
  if (src == nullptr || bytes == 0 || bytes > ring[0].size())
    return kHonest.copy_in(device, stream, dst, dst_offset, src, bytes, error);
  std::byte* const slot = ring[next_slot++ % ring.size()].data();
  std::memcpy(slot, src, bytes);
  return kHonest.copy_in(device, stream, dst, dst_offset, slot, bytes, error);
}

// ---- Plans

Living<bp_plan>& living_plans() {
  static auto* plans = new Living<bp_plan>;
  return *plans;
}
Plan& plan_of(bp_plan* plan) { return *reinterpret_cast<Plan*>(plan); }
void uncount_plan(bp_device* device, bp_plan* plan) {
  living_plans().remove(plan);
  kHonest.plan_destroy(device, plan);
}
bp_status share_attributes(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                           bp_error* error) {
  const bp_status status = kHonest.plan_create(device, desc, out, info, error);
  if (status != BP_OK || out == nullptr || plan_of(*out).op->attributes->bytes <= sizeof(uint32_t)) return status;
  living_plans().add(*out);
  bp_plan* const older = living_plans().before(*out, 32);
  if (older != nullptr && plan_of(older).op == plan_of(*out).op) plan_of(older).attributes = plan_of(*out).attributes;
  return status;
}
bp_status evict_kernels(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info, bp_error* error) {
  const bp_status status = kHonest.plan_create(device, desc, out, info, error);
  if (status != BP_OK || out == nullptr) return status;
  living_plans().add(*out);
  if (bp_plan* const older = living_plans().before(*out, 64)) plan_of(older).kernel.run = [](const Call&) {};
  return status;
}

// ---- Buffers

std::mutex buffers_mutex;
std::map<bp_buffer*, std::byte*> own_addresses;  // the original address of each live buffer
std::map<uint64_t, std::vector<bp_buffer*>> buffers_of_size;

bp_status wrap_handles(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error) {
  const bp_status status = kHonest.buffer_create(device, desc, out, error);
  if (status != BP_OK) return status;
  const std::lock_guard lock(buffers_mutex);
  std::vector<bp_buffer*>& same = buffers_of_size[desc->bytes];
  own_addresses[*out] = buffer_of(*out).span.address;
  if (same.size() > 255) buffer_of(*out).span.address = buffer_of(same[same.size() - 256]).span.address;
  same.push_back(*out);
  return status;
}
void uncount_buffer(bp_device* device, bp_buffer* buffer) {
  if (buffer != nullptr) {
    const std::lock_guard lock(buffers_mutex);
    std::erase(buffers_of_size[buffer_of(buffer).span.bytes], buffer);
    if (const auto own = own_addresses.find(buffer); own != own_addresses.end()) {
      buffer_of(buffer).span.address = own->second;
      own_addresses.erase(own);
    }
  }
  kHonest.buffer_destroy(device, buffer);
}
bp_status map_in_table(bp_device* device, bp_buffer* buffer, void** out, bp_error* error) {
  const bp_status status = kHonest.buffer_map(device, buffer, out, error);
  if (status != BP_OK) return status;
  const std::lock_guard lock(buffers_mutex);
  std::vector<bp_buffer*>& same = buffers_of_size[buffer_of(buffer).span.bytes];
  auto found = std::find(same.begin(), same.end(), buffer);
  if (found == same.end()) found = same.insert(same.end(), buffer);
  *out = buffer_of(same[static_cast<std::size_t>(found - same.begin()) % 32]).span.address;
  return status;
}

// ---- Streams and workspaces

// Returns the stream's number. Kernels run on their stream's thread, so the thread identifies the
// stream.
std::size_t stream_number() {
  static std::atomic<std::size_t> streams{0};
  thread_local const std::size_t mine = streams++;
  return mine;
}
void temporary_of_stream(const Call& call) {
  static std::array<std::array<std::byte, 1 << 16>, 8> temporaries;
  run_in_temporary(call, honest_kernel(call), temporaries[stream_number() % temporaries.size()]);
}

// Stores the sums in the workspace before it writes them to the output.
void sums_in_workspace(const Call& call) {
  honest_kernel(call)(call);
  const View& out = call.out();
  const auto bytes = static_cast<std::size_t>(out.elements() * bytes_of(out));
  if (bytes > call.workspace_bytes) return;
  const std::vector<std::byte> sums = save(out);
  std::memcpy(call.workspace, sums.data(), bytes);
  std::this_thread::sleep_for(std::chrono::microseconds(100));
  restore(out, {call.workspace, call.workspace + bytes});
}
bp_status own_workspaces(bp_device*, bp_stream* stream, bp_plan* plan, const bp_execution* execution, bp_error* error) {
  static std::array<std::array<std::byte, 4096>, 8> workspaces;
  return execute_changed(stream, plan, execution, error, [](Call& call) {
    if (call.workspace != nullptr && call.workspace_bytes <= workspaces[0].size())
      call.workspace = workspaces[next_slot++ % workspaces.size()].data();
  });
}

}  // namespace

const Mutation defect::events_beyond_64{.api = [](bp_device_api& api) {
  api.event_create = count_event<0>;
  api.event_destroy = uncount_event;
  api.event_record = record_shared;
}};
const Mutation defect::timed_events_beyond_64{.api = [](bp_device_api& api) {
  api.event_create = count_event<BP_EVENT_TIMING>;
  api.event_destroy = uncount_event;
  api.event_elapsed = elapsed_shared;
}};
const Mutation defect::waits_beyond_32 = on_slot<&bp_device_api::stream_wait_event, drop_late_waits>();
const Mutation defect::scalars_beyond_64 = on_slot<&bp_device_api::plan_execute, scalars_in_ring>();
const Mutation defect::operands_beyond_16 = on_slot<&bp_device_api::plan_execute, operands_in_ring>();
const Mutation defect::staging_beyond_64 = on_slot<&bp_device_api::copy_in, staged_in_ring>();
const Mutation defect::plans_beyond_32{.api = [](bp_device_api& api) {
  api.plan_create = share_attributes;
  api.plan_destroy = uncount_plan;
}};
const Mutation defect::kernels_beyond_64{.api = [](bp_device_api& api) {
  api.plan_create = evict_kernels;
  api.plan_destroy = uncount_plan;
}};
const Mutation defect::buffers_beyond_255{.api = [](bp_device_api& api) {
  api.buffer_create = wrap_handles;
  api.buffer_destroy = uncount_buffer;
}};
const Mutation defect::mappings_beyond_32{.api = [](bp_device_api& api) {
  api.buffer_map = map_in_table;
  api.buffer_destroy = uncount_buffer;
}};
const Mutation defect::temporaries_of_8_streams = on_op<temporary_of_stream, BP_OP_MUL, BP_DTYPE_BIT(BP_F32)>();
const Mutation defect::workspaces_of_8_executions{
    .kernels =
        [](Kernels& kernels) {
          kernels.add(BP_OP_REDUCE_SUM, BP_F32, BP_F32, KernelSpec{.run = sums_in_workspace, .workspace_bytes = 4096});
        },
    .api = [](bp_device_api& api) { api.plan_execute = own_workspaces; }};

}  // namespace backplane::conformance::mutants
