// SPDX-License-Identifier: Apache-2.0
// Defects of bp.graph: captures, launches and replaced ranges.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>

#include "mutation.hpp"

namespace backplane::conformance::mutants {
namespace {

constexpr const bp_graph_api& kHonestGraph = GraphTable<HostDevice>::table;

// Implements get_interface. Returns a table of bp.graph that kChange has modified.
template <auto kChange>
const void* changed_graph(const bp_plugin* plugin, bp_device* device, const char* name, uint32_t version) {
  static const bp_graph_api table = [] {
    bp_graph_api copy = kHonestGraph;
    kChange(copy);
    return copy;
  }();
  const void* honest = honest_plugin().get_interface(plugin, device, name, version);
  return honest != nullptr && std::string_view(name) == BP_INTERFACE_GRAPH ? &table : honest;
}
template <auto kChange>
constexpr Mutation on_graph() {
  return {.plugin = [](bp_plugin& plugin) { plugin.get_interface = changed_graph<kChange>; }};
}
// Returns the mutation that replaces the slot kSlot of bp.graph with kRun.
template <auto kSlot, auto kRun>
constexpr Mutation on_graph_slot() {
  return on_graph<[](bp_graph_api& table) { table.*kSlot = kRun; }>();
}

HostWork& work_of(bp_graph* graph) { return *reinterpret_cast<HostGraph*>(graph)->work; }

// Implements graph_begin. kSpoil modifies copies of the caller's descriptor and bindings before the
// capture begins.
template <void (*kSpoil)(bp_graph_desc&, std::vector<bp_graph_binding>&)>
bp_status begins_otherwise(bp_device* device, bp_stream* stream, const bp_graph_desc* desc, bp_error* error) {
  if (desc == nullptr || desc->struct_size != sizeof(*desc)) {
    return kHonestGraph.graph_begin(device, stream, desc, error);
  }
  bp_graph_desc changed = *desc;
  std::vector<bp_graph_binding> bindings;
  if (desc->bindings != nullptr) bindings.assign(desc->bindings, desc->bindings + desc->binding_count);
  kSpoil(changed, bindings);
  if (desc->bindings != nullptr) {
    changed.bindings = bindings.data();
    changed.binding_count = static_cast<uint32_t>(bindings.size());
  }
  return kHonestGraph.graph_begin(device, stream, &changed, error);
}
template <void (*kSpoil)(bp_graph_desc&, std::vector<bp_graph_binding>&)>
constexpr Mutation on_begin() {
  return on_graph_slot<&bp_graph_api::graph_begin, begins_otherwise<kSpoil>>();
}
using Bindings = std::vector<bp_graph_binding>;

// Moves each binding that starts inside another binding to the end of that other binding.
void cut_overlaps(bp_graph_desc&, Bindings& bindings) {
  for (size_t i = 0; i < bindings.size(); ++i) {
    for (size_t other = 0; other < bindings.size(); ++other) {
      if (other == i || bindings[other].buffer != bindings[i].buffer) continue;
      const uint64_t end = bindings[other].offset + bindings[other].bytes;
      if (bindings[other].offset <= bindings[i].offset && bindings[i].offset < end) bindings[i].offset = end;
    }
  }
}
void cut_to_buffer(bp_graph_desc&, Bindings& bindings) {
  for (bp_graph_binding& binding : bindings) {
    if (binding.buffer == nullptr) continue;
    const uint64_t room = buffer_of(binding.buffer).span.bytes;
    binding.offset = std::min(binding.offset, room - 1);
    binding.bytes = std::min(binding.bytes, room - binding.offset);
  }
}

// Implements graph_launch. kSpoil modifies a copy of the caller's bindings before the launch.
template <void (*kSpoil)(bp_graph* graph, Bindings&)>
bp_status launches_otherwise(bp_device* device, bp_stream* stream, bp_graph* graph, const bp_graph_binding* bindings,
                             uint32_t count, bp_error* error) {
  if (graph == nullptr || bindings == nullptr) {
    return kHonestGraph.graph_launch(device, stream, graph, bindings, count, error);
  }
  Bindings changed(bindings, bindings + count);
  kSpoil(graph, changed);
  return kHonestGraph.graph_launch(device, stream, graph, changed.data(), static_cast<uint32_t>(changed.size()), error);
}
template <void (*kSpoil)(bp_graph* graph, Bindings&)>
constexpr Mutation on_launch() {
  return on_graph_slot<&bp_graph_api::graph_launch, launches_otherwise<kSpoil>>();
}

void drop_surplus(bp_graph* graph, Bindings& bindings) {
  const size_t recorded = work_of(graph).bindings().size();
  if (bindings.size() > recorded) bindings.resize(recorded);
}
void move_into_buffer(bp_graph*, Bindings& bindings) {
  for (bp_graph_binding& binding : bindings) {
    if (binding.buffer == nullptr) continue;
    const uint64_t room = buffer_of(binding.buffer).span.bytes;
    if (binding.bytes <= room && binding.offset > room - binding.bytes) binding.offset = room - binding.bytes;
  }
}

// A launch without bindings uses the ranges of the previous launch.
bp_status keeps_bindings(bp_device* device, bp_stream* stream, bp_graph* graph, const bp_graph_binding* bindings,
                         uint32_t count, bp_error* error) {
  static std::mutex mutex;
  static std::map<bp_graph*, Bindings> latest;
  Bindings used;
  {
    const std::lock_guard lock(mutex);
    if (count != 0 && bindings != nullptr) latest[graph].assign(bindings, bindings + count);
    used = latest[graph];
  }
  if (graph == nullptr || count != 0 || used.size() != work_of(graph).bindings().size()) {
    return kHonestGraph.graph_launch(device, stream, graph, bindings, count, error);
  }
  return kHonestGraph.graph_launch(device, stream, graph, used.data(), static_cast<uint32_t>(used.size()), error);
}
// Only the first launch of each graph has an effect.
bp_status launches_once(bp_device* device, bp_stream* stream, bp_graph* graph, const bp_graph_binding* bindings,
                        uint32_t count, bp_error* error) {
  static std::mutex mutex;
  static std::set<HostWork*> launched;
  if (graph != nullptr && stream != nullptr) {
    const std::lock_guard lock(mutex);
    if (!launched.insert(&work_of(graph)).second) return BP_OK;
  }
  return kHonestGraph.graph_launch(device, stream, graph, bindings, count, error);
}
// Runs the launches of all streams on one private stream. The caller's stream does not wait for the launches.
bp_status launches_on_first_stream(bp_device* device, bp_stream* stream, bp_graph* graph,
                                   const bp_graph_binding* bindings, uint32_t count, bp_error* error) {
  static HostStream* const own = new HostStream;
  const bool legal = stream != nullptr && graph != nullptr && !stream_of(stream).capturing();
  bp_stream* const used = legal ? reinterpret_cast<bp_stream*>(own) : stream;
  return kHonestGraph.graph_launch(device, used, graph, bindings, count, error);
}
bp_status launch_null_accepted(bp_device* device, bp_stream* stream, bp_graph* graph, const bp_graph_binding* bindings,
                               uint32_t count, bp_error* error) {
  if (device != nullptr && stream != nullptr && graph == nullptr) return BP_OK;
  return kHonestGraph.graph_launch(device, stream, graph, bindings, count, error);
}
bp_status launches_in_capture(bp_device* device, bp_stream* stream, bp_graph* graph, const bp_graph_binding* bindings,
                              uint32_t count, bp_error* error) {
  if (stream != nullptr && graph != nullptr && stream_of(stream).capturing()) return BP_OK;
  return kHonestGraph.graph_launch(device, stream, graph, bindings, count, error);
}
bp_status begins_in_capture(bp_device* device, bp_stream* stream, const bp_graph_desc* desc, bp_error* error) {
  if (stream != nullptr && stream_of(stream).capturing()) return BP_OK;
  return kHonestGraph.graph_begin(device, stream, desc, error);
}

// A pending launch. When the stream reaches the launch, kRun executes its tasks.
struct LaunchByHand {
  std::shared_ptr<HostWork> work;
  std::vector<std::byte*> addresses;  // the starts of the ranges of this launch
};
using RunByHand = void (*)(const LaunchByHand&);

bool is_legal(const HostWork& work, const bp_graph_binding* bindings, uint32_t count) {
  const auto& recorded = work.bindings();
  if (count != 0 && (count != recorded.size() || bindings == nullptr)) return false;
  for (uint32_t i = 0; i < count; ++i) {
    if (bindings[i].buffer == nullptr || bindings[i].bytes != recorded[i].bytes) return false;
    const HostBuffer& buffer = buffer_of(bindings[i].buffer);
    if (buffer.kind != recorded[i].kind || bindings[i].bytes > buffer.span.bytes) return false;
    if (bindings[i].offset > buffer.span.bytes - bindings[i].bytes) return false;
  }
  return true;
}
// Implements graph_launch for legal launches. graph_launch calls kBegin, and the stream calls kRun
// when it reaches the launch.
template <RunByHand kBegin, RunByHand kRun>
bp_status launches_by_hand(bp_device* device, bp_stream* stream, bp_graph* graph, const bp_graph_binding* bindings,
                           uint32_t count, bp_error* error) {
  if (device == nullptr || stream == nullptr || graph == nullptr || stream_of(stream).capturing() ||
      !is_legal(work_of(graph), bindings, count)) {
    return kHonestGraph.graph_launch(device, stream, graph, bindings, count, error);
  }
  const auto launch = std::make_shared<LaunchByHand>();
  launch->work = reinterpret_cast<HostGraph*>(graph)->work;
  for (uint32_t i = 0; i < count; ++i) {
    launch->addresses.push_back(buffer_of(bindings[i].buffer).span.address + bindings[i].offset);
  }
  if (count == 0) {
    for (const HostWork::Binding& binding : launch->work->bindings()) launch->addresses.push_back(binding.address);
  }
  kBegin(*launch);
  return stream_of(stream)
      .enqueue(HostTask::Kind::kCall,
               [&](HostTask& task) {
                 task.kernel = [](const Call& call) { kRun(call.prepared<LaunchByHand>()); };
                 task.call.state = launch;
                 return Status{};
               })
      .code();
}
void run_task(HostTask& task) {
  static thread_local Scratch scratch;
  if (task.kind == HostTask::Kind::kCopy) {
    std::memcpy(task.dst, task.src, task.bytes);
    return;
  }
  task.call.scratch = &scratch;
  task.kernel(task.call);
}

// The ranges of the latest launch of each graph. With the defect, pending launches use these ranges instead of their
// own.
struct LatestRanges {
  std::mutex mutex;
  std::map<HostWork*, std::vector<std::byte*>> all;
};
LatestRanges latest_ranges;
void set_latest(const LaunchByHand& launch) {
  const std::lock_guard lock(latest_ranges.mutex);
  latest_ranges.all[launch.work.get()] = launch.addresses;
}
void run_with_latest(const LaunchByHand& launch) {
  {
    const std::lock_guard lock(latest_ranges.mutex);
    launch.work->bind(latest_ranges.all[launch.work.get()]);
  }
  for (HostTask& task : launch.work->tasks()) run_task(task);
}

bool refers_to(const HostTask& task, const HostWork::Binding& binding) {
  const auto is_inside = [&](const void* address) {
    const auto at = reinterpret_cast<uintptr_t>(address), begin = reinterpret_cast<uintptr_t>(binding.address);
    return at >= begin && at - begin < binding.bytes;
  };
  if (task.kind == HostTask::Kind::kCopy) return is_inside(task.dst) || is_inside(task.src);
  return std::any_of(task.call.views.begin(), task.call.views.end(),
                     [&](const View& view) { return !view.is_immediate && is_inside(view.data); });
}
// Replaces a range only in the first task that refers to the range.
void run_first_replaced(const LaunchByHand& launch) {
  const auto& bindings = launch.work->bindings();
  std::vector<std::byte*> recorded;
  for (const HostWork::Binding& binding : bindings) recorded.push_back(binding.address);
  std::vector<std::byte*> addresses = launch.addresses;
  for (HostTask& task : launch.work->tasks()) {
    launch.work->bind(recorded);
    std::vector<std::byte*> next = addresses;
    for (size_t i = 0; i < bindings.size(); ++i) {
      if (refers_to(task, bindings[i])) next[i] = recorded[i];
    }
    launch.work->bind(addresses);
    run_task(task);
    addresses = next;
  }
}

// Implements graph_end. kSpoil modifies the captured tasks or the returned info.
template <void (*kSpoil)(HostWork&, bp_graph_info*)>
bp_status ends_otherwise(bp_device* device, bp_stream* stream, bp_graph** out, bp_graph_info* info, bp_error* error) {
  const bp_status status = kHonestGraph.graph_end(device, stream, out, info, error);
  if (status == BP_OK) kSpoil(work_of(*out), info);
  return status;
}
template <void (*kSpoil)(HostWork&, bp_graph_info*)>
constexpr Mutation on_end() {
  return on_graph_slot<&bp_graph_api::graph_end, ends_otherwise<kSpoil>>();
}
void swap_last_tasks(HostWork& work, bp_graph_info*) {
  std::deque<HostTask>& tasks = work.tasks();
  const size_t count = tasks.size();
  if (count < 2) return;
  HostTask &one = tasks[count - 2], &two = tasks[count - 1];
  if (one.kind == HostTask::Kind::kCopy && two.kind == HostTask::Kind::kCopy) {
    std::swap(one.dst, two.dst);
    std::swap(one.src, two.src);
  }
}
void drop_last_copy(HostWork& work, bp_graph_info*) {
  if (!work.tasks().empty() && work.tasks().back().kind == HostTask::Kind::kCopy) work.tasks().back().bytes /= 2;
}
// Reads scalars in device memory when the capture ends, instead of at each launch.
void read_early(HostWork& work, bp_graph_info*) {
  for (HostTask& task : work.tasks()) {
    for (uint32_t i = 0; i < Call::kMaxScalars; ++i) {
      if (task.call.scalar_at[i] == nullptr) continue;
      std::memcpy(&task.call.scalar_bits[i], task.call.scalar_at[i], 4);
      task.call.scalar_at[i] = nullptr;
    }
  }
}
void leak(HostWork&, bp_graph_info*) {
  void* volatile lost = std::malloc(4096);
  std::memset(lost, 1, 4096);
}
// Accepts a capture whose first stream has not waited for the other streams.
bp_status ends_unjoined(bp_device* device, bp_stream* stream, bp_graph** out, bp_graph_info* info, bp_error* error) {
  if (stream != nullptr && stream_of(stream).capturing() && stream_of(stream).lane() == 0) {
    HostCapture& capture = *stream_of(stream).capture();
    for (std::size_t lane = 1; lane < capture.lanes(); ++lane) capture.wait(0, capture.point(lane));
  }
  return kHonestGraph.graph_end(device, stream, out, info, error);
}
bp_status ends_nothing(bp_device* device, bp_stream* stream, bp_graph** out, bp_graph_info* info, bp_error* error) {
  if (device != nullptr && stream != nullptr && out != nullptr && !stream_of(stream).capturing()) {
    *out = reinterpret_cast<bp_graph*>(new HostGraph{std::make_shared<HostWork>(std::vector<HostWork::Binding>{})});
    if (info != nullptr) info->nodes = 0;
    return BP_OK;
  }
  return kHonestGraph.graph_end(device, stream, out, info, error);
}
bp_status ends_on_any_stream(bp_device* device, bp_stream* stream, bp_graph** out, bp_graph_info* info,
                             bp_error* error) {
  if (stream != nullptr && out != nullptr && stream_of(stream).capturing() && stream_of(stream).lane() != 0) {
    stream_of(stream).join(stream_of(stream).capture(), 0);
  }
  return kHonestGraph.graph_end(device, stream, out, info, error);
}
bp_status null_graph_accepted(bp_device* device, bp_stream* stream, bp_graph** out, bp_graph_info* info,
                              bp_error* error) {
  if (device != nullptr && stream != nullptr && out == nullptr) return BP_OK;
  return kHonestGraph.graph_end(device, stream, out, info, error);
}

// Discards the work of pending launches when their graph is destroyed.
void destroy_drops_launches(bp_device* device, bp_graph* graph) {
  if (graph != nullptr) work_of(graph).tasks().clear();
  kHonestGraph.graph_destroy(device, graph);
}

// ---- Device slots that do not treat captures correctly

// Captures the copy, but also executes it immediately.
bp_status copies_in_capture(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, bp_buffer* src,
                            uint64_t src_offset, uint64_t bytes, bp_error* error) {
  const bool captures = stream != nullptr && dst != nullptr && src != nullptr && stream_of(stream).capturing();
  if (captures) std::memcpy(buffer_of(dst).span.address + dst_offset, buffer_of(src).span.address + src_offset, bytes);
  return kHonest.copy(device, stream, dst, dst_offset, src, src_offset, bytes, error);
}
bp_status executes_in_capture(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                              bp_error* error) {
  if (stream == nullptr || !stream_of(stream).capturing()) {
    return kHonest.plan_execute(device, stream, plan, execution, error);
  }
  HostStream passing;
  (void)kHonest.plan_execute(device, reinterpret_cast<bp_stream*>(&passing), plan, execution, error);
  (void)passing.wait(BP_WAIT_FOREVER);
  return kHonest.plan_execute(device, stream, plan, execution, error);
}
bp_status waits_in_capture(bp_device* device, bp_stream* stream, uint64_t timeout_ns, bp_error* error) {
  if (stream != nullptr && stream_of(stream).capturing()) return BP_OK;
  return kHonest.stream_wait(device, stream, timeout_ns, error);
}
bp_status event_of_capture_has_passed(bp_device* device, bp_event* event, uint64_t timeout_ns, bp_error* error) {
  if (event != nullptr && event_of(event).latest().capture != nullptr) return BP_OK;
  return kHonest.event_wait(device, event, timeout_ns, error);
}
bp_status waits_for_any_event(bp_device* device, bp_stream* stream, bp_event* event, bp_error* error) {
  if (stream != nullptr && event != nullptr && stream_of(stream).capturing() &&
      event_of(event).latest().capture == nullptr) {
    return BP_OK;
  }
  return kHonest.stream_wait_event(device, stream, event, error);
}
bp_status waits_for_other_captures(bp_device* device, bp_stream* stream, bp_event* event, bp_error* error) {
  if (stream != nullptr && event != nullptr && stream_of(stream).capturing() &&
      event_of(event).latest().capture != nullptr && event_of(event).latest().capture != stream_of(stream).capture()) {
    return BP_OK;
  }
  return kHonest.stream_wait_event(device, stream, event, error);
}
bp_status waits_for_ended_captures(bp_device* device, bp_stream* stream, bp_event* event, bp_error* error) {
  if (stream != nullptr && event != nullptr && event_of(event).latest().capture != nullptr &&
      !event_of(event).latest().capture->active()) {
    return BP_OK;
  }
  return kHonest.stream_wait_event(device, stream, event, error);
}
// If a stream waits for an event that was recorded in a capture, the stream does not join the
// capture.
bp_status joins_nothing(bp_device* device, bp_stream* stream, bp_event* event, bp_error* error) {
  if (stream != nullptr && event != nullptr && !stream_of(stream).capturing() &&
      event_of(event).latest().capture != nullptr && event_of(event).latest().capture->active()) {
    return BP_OK;
  }
  return kHonest.stream_wait_event(device, stream, event, error);
}
template <auto kRun>
constexpr Mutation on_wait_event() {
  return on_slot<&bp_device_api::stream_wait_event, kRun>();
}

}  // namespace

const Mutation defect::graph_slot_missing = on_graph<[](bp_graph_api& table) { table.graph_launch = nullptr; }>();
const Mutation defect::graph_copy_executes = on_slot<&bp_device_api::copy, copies_in_capture>();
const Mutation defect::graph_execution_executes = on_slot<&bp_device_api::plan_execute, executes_in_capture>();
const Mutation defect::graph_launches_once = on_graph_slot<&bp_graph_api::graph_launch, launches_once>();
const Mutation defect::graph_order_changed = on_end<swap_last_tasks>();
const Mutation defect::graph_copy_halved = on_end<drop_last_copy>();
const Mutation defect::graph_nodes_of_a_stream = on_end<[](HostWork&, bp_graph_info* info) {
  if (info != nullptr) info->nodes /= 2;
}>();
const Mutation defect::graph_on_its_own_stream = on_graph_slot<&bp_graph_api::graph_launch, launches_on_first_stream>();
const Mutation defect::graph_bindings_ignored = on_launch<[](bp_graph* graph, Bindings& bindings) {
  if (bindings.size() == work_of(graph).bindings().size()) bindings.clear();
}>();
const Mutation defect::graph_bindings_stay = on_graph_slot<&bp_graph_api::graph_launch, keeps_bindings>();
const Mutation defect::graph_offset_ignored = on_launch<[](bp_graph*, Bindings& bindings) {
  for (bp_graph_binding& binding : bindings) binding.offset = 0;
}>();
const Mutation defect::graph_bindings_of_pending_launches =
    on_graph_slot<&bp_graph_api::graph_launch, launches_by_hand<set_latest, run_with_latest>>();
const Mutation defect::graph_binding_of_one_call =
    on_graph_slot<&bp_graph_api::graph_launch, launches_by_hand<[](const LaunchByHand&) {}, run_first_replaced>>();
const Mutation defect::graph_scalars_read_early = on_end<read_early>();
const Mutation defect::graph_joins_nothing = on_wait_event<joins_nothing>();
const Mutation defect::graph_ends_unjoined = on_graph_slot<&bp_graph_api::graph_end, ends_unjoined>();
const Mutation defect::graph_destroy_drops_launches =
    on_graph_slot<&bp_graph_api::graph_destroy, destroy_drops_launches>();
const Mutation defect::graph_leaks = on_end<leak>();
const Mutation defect::graph_waits_in_capture = on_slot<&bp_device_api::stream_wait, waits_in_capture>();
const Mutation defect::graph_begins_twice = on_graph_slot<&bp_graph_api::graph_begin, begins_in_capture>();
const Mutation defect::graph_launches_in_capture = on_graph_slot<&bp_graph_api::graph_launch, launches_in_capture>();
const Mutation defect::graph_waits_for_any_event = on_wait_event<waits_for_any_event>();
const Mutation defect::graph_waits_for_other_captures = on_wait_event<waits_for_other_captures>();
const Mutation defect::graph_waits_for_ended_captures = on_wait_event<waits_for_ended_captures>();
const Mutation defect::graph_event_has_passed = on_slot<&bp_device_api::event_wait, event_of_capture_has_passed>();
const Mutation defect::graph_ends_nothing = on_graph_slot<&bp_graph_api::graph_end, ends_nothing>();
const Mutation defect::graph_ends_on_any_stream = on_graph_slot<&bp_graph_api::graph_end, ends_on_any_stream>();
const Mutation defect::graph_null_result = on_graph_slot<&bp_graph_api::graph_end, null_graph_accepted>();
const Mutation defect::graph_null_launch = on_graph_slot<&bp_graph_api::graph_launch, launch_null_accepted>();
const Mutation defect::graph_flags_ignored = on_begin<[](bp_graph_desc& desc, Bindings&) { desc.flags = 0; }>();
const Mutation defect::graph_reserved_ignored = on_begin<[](bp_graph_desc& desc, Bindings&) { desc.reserved = 0; }>();
const Mutation defect::graph_null_bindings = on_begin<[](bp_graph_desc& desc, Bindings&) {
  if (desc.bindings == nullptr) desc.binding_count = 0;
}>();
const Mutation defect::graph_null_buffer = on_begin<[](bp_graph_desc&, Bindings& bindings) {
  std::erase_if(bindings, [](const bp_graph_binding& binding) { return binding.buffer == nullptr; });
}>();
const Mutation defect::graph_no_bytes = on_begin<[](bp_graph_desc&, Bindings& bindings) {
  std::erase_if(bindings, [](const bp_graph_binding& binding) { return binding.bytes == 0; });
}>();
const Mutation defect::graph_binding_too_long = on_begin<cut_to_buffer>();
const Mutation defect::graph_bindings_overlap = on_begin<cut_overlaps>();
const Mutation defect::graph_too_few_bindings = on_launch<[](bp_graph* graph, Bindings& bindings) {
  const auto& recorded = work_of(graph).bindings();
  if (bindings.size() < recorded.size()) bindings.clear();
}>();
const Mutation defect::graph_too_many_bindings = on_launch<drop_surplus>();
const Mutation defect::graph_fewer_bytes = on_launch<[](bp_graph* graph, Bindings& bindings) {
  const auto& recorded = work_of(graph).bindings();
  for (size_t i = 0; i < bindings.size() && i < recorded.size(); ++i) bindings[i].bytes = recorded[i].bytes;
}>();
const Mutation defect::graph_launch_past_the_end = on_launch<move_into_buffer>();
const Mutation defect::graph_size_ignored =
    on_graph_slot<&bp_graph_api::graph_begin,
                  [](bp_device* device, bp_stream* stream, const bp_graph_desc* desc, bp_error* error) -> bp_status {
                    if (desc == nullptr || desc->struct_size < BP_GRAPH_DESC_MIN_SIZE) {
                      return kHonestGraph.graph_begin(device, stream, desc, error);
                    }
                    bp_graph_desc known = *desc;
                    known.struct_size = sizeof(known);
                    return kHonestGraph.graph_begin(device, stream, &known, error);
                  }>();

}  // namespace backplane::conformance::mutants
