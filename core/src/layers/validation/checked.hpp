// SPDX-License-Identifier: Apache-2.0
// The state of the layer `validation` for a device: its live objects and their pending work.
#pragma once

#include <backplane/plugin.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ref.hpp"
#include "base/strided_view.hpp"
#include "layers/validation/ledger.hpp"
#include "layers/wrap.hpp"

namespace backplane::core::layers {

struct CheckedBuffer;
struct CheckedPlan;

// A graph, or the capture that makes the graph.
struct CheckedGraph {
  struct Binding {
    uint64_t bytes;
    uint32_t kind;
  };

  bool capturing = true;
  uint64_t nodes = 0;  // captured executions and copies
  std::vector<Binding> bindings;
  // The captured objects, listed once for each use. Each object counts its uses.
  std::vector<CheckedBuffer*> buffers;
  std::vector<CheckedPlan*> plans;
  uint32_t calls = 0;

  // Reserves memory for the objects of one more call, so that the following `use` cannot fail.
  void expect();
  void use(const std::vector<CheckedBuffer*>& used, CheckedPlan* plan) noexcept;
  void forget() noexcept;
};

struct CheckedBuffer {
  uint32_t kind = BP_MEMORY_DEVICE;
  uint64_t bytes = 0;
  uint64_t alignment = 1;  // alignment of the first byte; 1 if unknown
  void* mapped = nullptr;
  uint64_t address = 0;   // address that buffer_address returned, or 0
  bool imported = false;  // an imported buffer may share its memory with other imports
  Clock uses;
  uint32_t calls = 0;   // number of running calls that use the buffer
  uint64_t graphs = 0;  // number of uses by captures and graphs
};

struct CheckedStream {
  uint64_t line = 0;
  uint32_t calls = 0;
  bool failed = false;
  std::shared_ptr<CheckedGraph> graph;  // the stream's latest capture
  bool began = false;                   // the capture began on this stream

  bool captures() const noexcept { return graph != nullptr && graph->capturing; }
};

struct CheckedEvent {
  Clock clock;  // the ledger's clock at the latest event_record call
  bool timing = false;
  // Number of event_record calls that have begun, plus the number that have returned. An odd value
  // means that a call is in progress.
  uint64_t records = 0;
  uint32_t calls = 0;
  std::shared_ptr<CheckedGraph> graph;  // capture in which the event was last recorded

  bool recording() const noexcept { return (records & 1) != 0; }
};

struct CheckedPack {
  Extent plain = {};  // the bytes of the plain operand, relative to its element 0
  uint64_t packed_bytes = 0;
  uint32_t calls = 0;
};

struct CheckedSemaphore {
  Clock uses;
  uint32_t calls = 0;
};

// A plan, with a copy of the descriptor for which it was made.
struct CheckedPlan {
  bp_op_desc desc = {};
  std::vector<unsigned char> attributes;
  std::vector<bp_tensor_desc> views;  // views of the inputs, then of the outputs
  bp_plan_info info = {};
  uint32_t calls = 0;
  uint64_t graphs = 0;  // number of uses by captures and graphs
};

// The live objects of one kind. Also remembers recently destroyed objects, so that messages can say
// that a handle was destroyed.
template <class Handle, class State>
class Objects {
 public:
  State* find(const Handle* handle) noexcept {
    const auto found = live_.find(handle);
    return found == live_.end() ? nullptr : &found->second;
  }
  State& add(const Handle* handle, State state) {
    std::replace(ended_.begin(), ended_.end(), static_cast<const void*>(handle), static_cast<const void*>(nullptr));
    return live_[handle] = std::move(state);
  }
  void end(const Handle* handle) noexcept {
    live_.erase(handle);
    ended_[next_++ % ended_.size()] = handle;
  }
  bool ended(const Handle* handle) const noexcept {
    return std::find(ended_.begin(), ended_.end(), static_cast<const void*>(handle)) != ended_.end();
  }
  size_t size() const noexcept { return live_.size(); }
  template <class Body>
  void for_each(Body&& body) const {
    for (const auto& [handle, state] : live_) body(state);
  }

 private:
  std::unordered_map<const Handle*, State> live_;
  std::array<const void*, 64> ended_ = {};
  size_t next_ = 0;
};

struct CheckedPlugin;

struct CheckedDevice : WrappedDevice {
  CheckedDevice(CheckedPlugin& plugin, bp_device* wrapped, uint32_t index, const bp_device_info& about);

  CheckedPlugin& owner;
  const bp_device_api& next;
  const bp_device_info info;
  const std::string name;  // "plugin:index"
  const pid_t process = getpid();
  const uint64_t serial;  // no other device of the process has this number
  std::atomic<uint32_t> calls{0};

  std::mutex mutex;  // guards all members below; never held during a plugin call
  Ledger ledger;
  Objects<bp_buffer, CheckedBuffer> buffers;
  Objects<bp_stream, CheckedStream> streams;
  Objects<bp_event, CheckedEvent> events;
  Objects<bp_plan, CheckedPlan> plans;
  Objects<bp_graph, std::shared_ptr<CheckedGraph>> graphs;
  Objects<bp_semaphore, CheckedSemaphore> semaphores;
  Objects<bp_pack, CheckedPack> packs;
  std::vector<uint64_t> enabled;  // the serial numbers of peers that peer_enable enabled

  Objects<bp_buffer, CheckedBuffer>& of(const bp_buffer*) { return buffers; }
  Objects<bp_stream, CheckedStream>& of(const bp_stream*) { return streams; }
  Objects<bp_event, CheckedEvent>& of(const bp_event*) { return events; }
  Objects<bp_plan, CheckedPlan>& of(const bp_plan*) { return plans; }
  Objects<bp_graph, std::shared_ptr<CheckedGraph>>& of(const bp_graph*) { return graphs; }
  Objects<bp_semaphore, CheckedSemaphore>& of(const bp_semaphore*) { return semaphores; }
  Objects<bp_pack, CheckedPack>& of(const bp_pack*) { return packs; }
};

struct CheckedPlugin : WrappedPlugin {
  CheckedPlugin(const bp_plugin* wrapped, const bp_host* given, Object* kept_by);
  Object* const keeper;  // owner of the plugin and its host; null if the plugin cannot shut down during a call
  const std::string name;
  const pid_t process = getpid();
  std::atomic<uint32_t> devices{0};  // number of open devices
};

// The open devices of all plugins that the layer wraps in this process.
class LiveDevices {
 public:
  void add(std::shared_ptr<CheckedDevice> device);
  // Returns null if `device` is not an open device.
  std::shared_ptr<CheckedDevice> find(const bp_device* device);
  void remove(const bp_device* device);
  // Logs to the registry of the device. If the device is unknown, logs to the registry of the
  // latest plugin. While the message is logged, no lock is held and the plugin cannot shut down.
  void log(const bp_device* device, const char* message);
  void add(const CheckedPlugin* plugin);
  void remove(const CheckedPlugin* plugin);
  // Returns whether a device other than `but` has `handle`. Ignores devices whose mutex is locked.
  template <class Handle>
  bool holds(const Handle* handle, const CheckedDevice& but) {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, device] : devices_) {
      if (device.get() == &but || !device->mutex.try_lock()) continue;
      const bool found = device->of(handle).find(handle) != nullptr;
      device->mutex.unlock();
      if (found) return true;
    }
    return false;
  }

  // Returns the only instance, which is never destroyed, so that the process may exit with open
  // devices.
  static LiveDevices& instance();

 private:
  LiveDevices();
  std::mutex mutex_;
  std::unordered_map<const void*, std::shared_ptr<CheckedDevice>> devices_;
  std::vector<const CheckedPlugin*> plugins_;
};

inline bp_device* handle_of(CheckedDevice& device) {
  return reinterpret_cast<bp_device*>(static_cast<WrappedDevice*>(&device));
}

}  // namespace backplane::core::layers
