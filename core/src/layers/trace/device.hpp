// SPDX-License-Identifier: Apache-2.0
// The state of the layer `trace` for one device: the numbers and tracks of its objects.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "layers/trace/event.hpp"
#include "layers/trace/file.hpp"
#include "layers/wrap.hpp"

namespace backplane::core::layers {

struct TracePlugin : WrappedPlugin {
  TracePlugin(const bp_plugin* wrapped, const bp_host* given, TraceFile& where)
      : WrappedPlugin(wrapped, given), file(where) {}

  TraceFile& file;  // the file exists until the process ends

  void add(TraceEvent& event) noexcept { file.add(event.text(), *host); }
};

// The state of a traced device. Every function may throw bad_alloc. If so, the caller drops the
// trace event, but still calls the plugin.
struct TraceDevice : WrappedDevice {
  TraceDevice(TracePlugin& plugin, const std::string& name);

  TracePlugin& owner;
  const uint32_t group;

  Track stream_track(const bp_stream* stream);
  Track thread_track();

  void add_buffer(const bp_buffer* buffer, uint32_t kind, uint64_t bytes);
  void drop_buffer(const bp_buffer* buffer);
  // Returns true at the first execution of `plan`.
  bool first_execution(const bp_plan* plan);
  // Returns the flow number of the latest event_record call for `event`, or 0 if the trace contains
  // no such call. A flow number identifies an arrow of the trace.
  uint64_t record_of(const bp_event* event);
  void set_record(const bp_event* event, uint64_t flow);

  void forget(const bp_buffer* buffer) { drop_buffer(buffer); }
  void forget(const bp_stream* stream);
  void forget(const bp_event* event);
  void forget(const bp_plan* plan);
  void forget(const bp_graph*) {}
  void forget(const bp_pack*) {}
  void forget(const bp_semaphore*) {}  // the trace keeps no state of semaphores

 private:
  void name_track(Track track, const std::string& name);
  void count_memory(uint32_t kind, uint64_t bytes);

  struct Memory {
    uint32_t kind;
    uint64_t bytes;
  };
  std::mutex mutex_;
  uint32_t streams_made_ = 0;
  std::map<const bp_stream*, uint32_t> streams_;
  std::map<const bp_buffer*, Memory> buffers_;
  std::map<const bp_event*, uint64_t> records_;
  std::set<const bp_plan*> executed_;
  std::set<uint32_t> threads_;
  uint64_t bytes_[BP_MEMORY_KINDS] = {};
};

}  // namespace backplane::core::layers
