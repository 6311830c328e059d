// SPDX-License-Identifier: Apache-2.0
// Assigns numbers and tracks to the objects of a traced device, and counts its memory.
#include "layers/trace/device.hpp"

#include <fmt/format.h>

namespace backplane::core::layers {

TraceDevice::TraceDevice(TracePlugin& plugin, const std::string& name)
    : WrappedDevice{nullptr}, owner(plugin), group(plugin.file.new_group()) {
  TraceEvent event('M', "process_name", {group, 0});
  owner.add(event.arg("name", name));
}

void TraceDevice::name_track(Track track, const std::string& name) {
  TraceEvent event('M', "thread_name", track);
  owner.add(event.arg("name", name));
}

Track TraceDevice::stream_track(const bp_stream* stream) {
  uint32_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto [found, is_new] = streams_.try_emplace(stream, 0);
    if (!is_new) return {group, found->second};
    number = found->second = ++streams_made_;
  }
  name_track({group, number}, fmt::format("stream {}", number));
  return {group, number};
}

Track TraceDevice::thread_track() {
  const uint32_t number = TraceFile::thread_number();
  const Track track = {group, kFirstThreadLine + number};
  {
    const std::lock_guard lock(mutex_);
    if (!threads_.insert(number).second) return track;
  }
  name_track(track, fmt::format("host thread {}", number));
  return track;
}

// The caller holds the mutex, so that the totals of a trace are in the order of the changes.
void TraceDevice::count_memory(uint32_t kind, uint64_t bytes) {
  static constexpr const char* names[BP_MEMORY_KINDS] = {"DEVICE memory", "HOST memory", "SHARED memory"};
  TraceEvent event('C', names[kind], {group, 0});
  owner.add(event.time(owner.file.now()).arg("bytes", bytes));
}

void TraceDevice::add_buffer(const bp_buffer* buffer, uint32_t kind, uint64_t bytes) {
  if (kind >= BP_MEMORY_KINDS) return;
  const std::lock_guard lock(mutex_);
  buffers_[buffer] = {kind, bytes};
  count_memory(kind, bytes_[kind] += bytes);
}

void TraceDevice::drop_buffer(const bp_buffer* buffer) {
  const std::lock_guard lock(mutex_);
  const auto found = buffers_.find(buffer);
  if (found == buffers_.end()) return;
  const uint32_t kind = found->second.kind;
  const uint64_t rest = bytes_[kind] -= found->second.bytes;
  buffers_.erase(found);
  count_memory(kind, rest);
}

bool TraceDevice::first_execution(const bp_plan* plan) {
  const std::lock_guard lock(mutex_);
  return executed_.insert(plan).second;
}

uint64_t TraceDevice::record_of(const bp_event* event) {
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(event);
  return found == records_.end() ? 0 : found->second;
}
void TraceDevice::set_record(const bp_event* event, uint64_t flow) {
  const std::lock_guard lock(mutex_);
  records_[event] = flow;
}

void TraceDevice::forget(const bp_stream* stream) {
  const std::lock_guard lock(mutex_);
  streams_.erase(stream);
}
void TraceDevice::forget(const bp_event* event) {
  const std::lock_guard lock(mutex_);
  records_.erase(event);
}
void TraceDevice::forget(const bp_plan* plan) {
  const std::lock_guard lock(mutex_);
  executed_.erase(plan);
}

}  // namespace backplane::core::layers
