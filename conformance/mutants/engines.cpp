// SPDX-License-Identifier: Apache-2.0
// Defects in devices with several engines: commands of one kind do not wait for commands of another
// kind.
#include <array>
#include <map>
#include <memory>
#include <mutex>

#include "mutation.hpp"

namespace backplane::conformance::mutants {
namespace {

enum Kind : uint32_t { kIn, kOut, kCopy, kExecute, kFill, kKinds };
constexpr uint32_t kAll = (1u << kKinds) - 1;

// A stream's second engine, and the position of the latest command of each kind on the first engine.
// A Lane needs no lock, because a stream has one caller at a time.
struct Lane {
  HostStream engine;
  std::array<uint64_t, kKinds> last{};
  std::map<const bp_buffer*, uint64_t> written;
  uint64_t executed() const { return std::max(last[kExecute], last[kFill]); }
  uint64_t last_of(uint32_t kinds) const {
    uint64_t point = 0;
    for (uint32_t kind = 0; kind < kKinds; ++kind)
      if ((kinds >> kind & 1u) != 0) point = std::max(point, last[kind]);
    return point;
  }
};
std::mutex lanes_mutex;
std::map<bp_stream*, std::unique_ptr<Lane>>& lanes() {
  static auto* all = new std::map<bp_stream*, std::unique_ptr<Lane>>;
  return *all;
}
Lane& lane_of(bp_stream* stream) {
  const std::lock_guard lock(lanes_mutex);
  std::unique_ptr<Lane>& lane = lanes()[stream];
  if (lane == nullptr) lane = std::make_unique<Lane>();
  return *lane;
}
void end_lane(bp_device* device, bp_stream* stream) {
  std::unique_ptr<Lane> ended;
  if (stream != nullptr) {
    const std::lock_guard lock(lanes_mutex);
    if (const auto found = lanes().find(stream); found != lanes().end()) {
      ended = std::move(found->second);
      lanes().erase(found);
    }
  }
  kHonest.stream_destroy(device, stream);
}
bp_stream* handle_of(HostStream& stream) { return reinterpret_cast<bp_stream*>(&stream); }

void wait_for(HostStream& waiting, HostStream& other, uint64_t point) {
  if (point == 0) return;
  (void)waiting.enqueue(HostTask::Kind::kWait, [&](HostTask& task) {
    task.other = other.timeline();
    task.point = point;
    return Status{};
  });
}

// Runs `enqueue(stream)` on the second engine, after the first engine has reached `point`. Later
// work on the first engine waits for the work that `enqueue` adds.
template <class Enqueue>
bp_status on_engine(bp_stream* stream, uint64_t point, const Enqueue& enqueue) {
  Lane& lane = lane_of(stream);
  wait_for(lane.engine, stream_of(stream), point);
  const bp_status status = enqueue(handle_of(lane.engine));
  wait_for(stream_of(stream), lane.engine, lane.engine.point());
  return status;
}

// Device slots that run the command kinds in the bit mask kMoved on the second engine. The moved commands wait only for
// commands of the kinds in the bit mask kHonoured.
template <uint32_t kMoved, uint32_t kHonoured>
struct Engine {
  template <class Enqueue>
  static bp_status run(Kind kind, bp_stream* stream, const Enqueue& enqueue) {
    Lane& lane = lane_of(stream);
    const bp_status status =
        (kMoved >> kind & 1u) == 0 ? enqueue(stream) : on_engine(stream, lane.last_of(kHonoured), enqueue);
    if (status == BP_OK) lane.last[kind] = stream_of(stream).point();
    return status;
  }
  static bp_status copy(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, bp_buffer* src,
                        uint64_t src_offset, uint64_t bytes, bp_error* error) {
    return run(kCopy, stream,
               [&](bp_stream* on) { return kHonest.copy(device, on, dst, dst_offset, src, src_offset, bytes, error); });
  }
  static bp_status copy_in(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, const void* src,
                           uint64_t bytes, bp_error* error) {
    return run(kIn, stream,
               [&](bp_stream* on) { return kHonest.copy_in(device, on, dst, dst_offset, src, bytes, error); });
  }
  static bp_status copy_out(bp_device* device, bp_stream* stream, void* dst, bp_buffer* src, uint64_t src_offset,
                            uint64_t bytes, bp_error* error) {
    return run(kOut, stream,
               [&](bp_stream* on) { return kHonest.copy_out(device, on, dst, src, src_offset, bytes, error); });
  }
  static bp_status execute(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                           bp_error* error) {
    const bool fill = reinterpret_cast<const Plan*>(plan)->op->id == BP_OP_FILL;
    return run(fill ? kFill : kExecute, stream,
               [&](bp_stream* on) { return kHonest.plan_execute(device, on, plan, execution, error); });
  }
  static void install(bp_device_api& api) {
    api.copy = copy;
    api.copy_in = copy_in;
    api.copy_out = copy_out;
    api.plan_execute = execute;
    api.stream_destroy = end_lane;
  }
};
constexpr uint32_t bit(Kind kind) { return 1u << kind; }

// Device slots whose copies wait only for the last writers of the buffers that the copies use.
struct WritersOnly {
  static void wrote(bp_stream* stream, const bp_buffer* buffer) {
    lane_of(stream).written[buffer] = stream_of(stream).point();
  }
  static bp_status copy(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, bp_buffer* src,
                        uint64_t src_offset, uint64_t bytes, bp_error* error) {
    Lane& lane = lane_of(stream);
    const bp_status status = on_engine(stream, std::max(lane.written[dst], lane.written[src]), [&](bp_stream* on) {
      return kHonest.copy(device, on, dst, dst_offset, src, src_offset, bytes, error);
    });
    wrote(stream, dst);
    return status;
  }
  static bp_status copy_in(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, const void* src,
                           uint64_t bytes, bp_error* error) {
    const bp_status status = kHonest.copy_in(device, stream, dst, dst_offset, src, bytes, error);
    wrote(stream, dst);
    return status;
  }
  static bp_status execute(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                           bp_error* error) {
    const bp_status status = kHonest.plan_execute(device, stream, plan, execution, error);
    if (status != BP_OK) return status;
    for (uint32_t i = 0; i < execution->desc->output_count; ++i) wrote(stream, execution->outputs[i].buffer);
    return status;
  }
  // stream_wait_event orders all commands, so the defect violates only the order within a stream.
  static bp_status wait_event(bp_device* device, bp_stream* stream, bp_event* event, bp_error* error) {
    const bp_status status = kHonest.stream_wait_event(device, stream, event, error);
    Lane& lane = lane_of(stream);
    wait_for(lane.engine, stream_of(stream), stream_of(stream).point());
    return status;
  }
  static void install(bp_device_api& api) {
    api.copy = copy;
    api.copy_in = copy_in;
    api.plan_execute = execute;
    api.stream_wait_event = wait_event;
    api.stream_destroy = end_lane;
  }
};

// An event covers only the executions that were enqueued before event_record, and no copies.
bp_status record_executions(bp_device* device, bp_event* event, bp_stream* stream, bp_error* error) {
  Lane& lane = lane_of(stream);
  if (event_of(event).timed()) return kHonest.event_record(device, event, stream, error);
  wait_for(lane.engine, stream_of(stream), lane.executed());
  return kHonest.event_record(device, event, handle_of(lane.engine), error);
}

}  // namespace

const Mutation defect::upload_passes_executions{.api = Engine<bit(kIn), kAll & ~(bit(kExecute) | bit(kFill))>::install};
const Mutation defect::upload_passes_downloads{.api = Engine<bit(kIn), kAll & ~bit(kOut)>::install};
const Mutation defect::copy_passes_readers{.api = WritersOnly::install};
const Mutation defect::fill_passes_executions{.api = Engine<bit(kFill), kAll & ~bit(kExecute)>::install};
const Mutation defect::execution_passes_downloads{.api =
                                                      Engine<bit(kExecute) | bit(kFill), kAll & ~bit(kOut)>::install};
const Mutation defect::upload_passes_events{.api = Engine<bit(kIn), kAll>::install};
const Mutation defect::copies_pass_events{.api = Engine<bit(kCopy), kAll>::install};
const Mutation defect::record_of_executions{.api = [](bp_device_api& api) {
  Engine<0, kAll>::install(api);
  api.event_record = record_executions;
}};

}  // namespace backplane::conformance::mutants
