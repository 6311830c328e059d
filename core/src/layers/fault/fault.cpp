// SPDX-License-Identifier: Apache-2.0
// The layer `fault`: makes calls fail, delays calls, or marks the device as lost, as the fault
// rules of a schedule specify.
#include "layers/fault/fault.hpp"

#include <backplane/backplane.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <thread>
#include <tuple>

#include "base/error.hpp"
#include "layers/fault/schedule.hpp"
#include "layers/splice.hpp"

namespace backplane::core::layers {

namespace {

struct FaultPlugin : WrappedPlugin {
  FaultPlugin(const bp_plugin* wrapped, const bp_host* given, std::shared_ptr<const FaultSchedule> what)
      : WrappedPlugin(wrapped, given), schedule(std::move(what)) {}

  const std::shared_ptr<const FaultSchedule> schedule;
  std::array<std::atomic<uint64_t>, kSlotCount> calls = {};
  std::atomic<uint64_t> device_calls{0};  // number of calls to all device slots together
};

struct FaultDevice : WrappedDevice {
  FaultDevice(FaultPlugin& plugin, bp_device* wrapped) : WrappedDevice{wrapped}, owner(plugin) {}

  FaultPlugin& owner;
  // Each plugin call holds a shared lock. The thread that marks the device as lost holds an
  // exclusive lock.
  std::shared_mutex use;
  std::atomic<bool> lost{false};
  std::mutex mutex;                    // guards `streams`
  std::map<bp_stream*, bool> streams;  // the value is true if the layer has failed the stream
};

FaultPlugin& fault_of(const bp_plugin* plugin) { return static_cast<FaultPlugin&>(wrapped(plugin)); }
FaultDevice& fault_of(bp_device* device) {
  return static_cast<FaultDevice&>(*reinterpret_cast<WrappedDevice*>(device));
}

// The effects of the schedule's fault rules on one call.
struct Decision {
  uint64_t call = 0;
  bp_status status = BP_OK;
  std::chrono::nanoseconds delay{0};
  bool lose = false;
};

Decision decide(FaultPlugin& plugin, Slot slot, bool of_device) {
  Decision decision;
  decision.call = plugin.calls[static_cast<size_t>(slot)].fetch_add(1, std::memory_order_relaxed) + 1;
  const uint64_t any = of_device ? plugin.device_calls.fetch_add(1, std::memory_order_relaxed) + 1 : 0;
  for (const FaultEntry& entry : plugin.schedule->entries) {
    if (entry.slot && *entry.slot != slot) continue;
    switch (entry.kind) {
      case FaultEntry::Kind::fail:
        if (decision.status == BP_OK && (decision.call == entry.call || (entry.onward && decision.call > entry.call))) {
          decision.status = entry.status;
        }
        break;
      case FaultEntry::Kind::delay:
        decision.delay += entry.time;
        break;
      case FaultEntry::Kind::lose:
        decision.lose |= of_device && (entry.slot ? decision.call : any) == entry.call;
        break;
    }
  }
  return decision;
}

// Fills the error record and returns `status`. TIMEOUT and NOT_READY leave the record unchanged.
bp_status fail(const FaultPlugin& plugin, Slot slot, bp_status status, const char* why, bp_error* error) {
  if (status == BP_TIMEOUT || status == BP_NOT_READY) return status;
  return Error(status, "fault: {:.64}: {}: answers {}: {}", plugin.table.name, slot_name(slot), bph_status_name(status),
               why)
      .write(error);
}
bp_status injected(const FaultPlugin& plugin, Slot slot, const Decision& decision, bp_error* error) {
  const Error why(BP_OK, "the layer was told so of call {}", decision.call);
  return fail(plugin, slot, decision.status, why.what(), error);
}

// Marks the device as lost and waits for all its work, so that the caller may then destroy every
// object.
void lose(FaultDevice& device) {
  const std::unique_lock alone(device.use);
  if (device.lost.exchange(true)) return;
  const std::lock_guard lock(device.mutex);
  for (const auto& [stream, failed] : device.streams) {
    bp_error ignored = fresh_error();
    (void)device.owner.next.stream_wait(device.inner, stream, BP_WAIT_FOREVER, &ignored);
  }
}

// Returns true if the layer fails the stream at this call (`now`), or if an earlier call has failed
// the stream.
bool failed(FaultDevice& device, bp_stream* stream, bool now) {
  const std::lock_guard lock(device.mutex);
  const auto found = device.streams.find(stream);
  if (found == device.streams.end()) return now;
  return found->second |= now;
}

// Registers a new stream. If there is no memory for the entry, destroys the stream.
bp_status add_stream(FaultDevice& device, bp_stream** stream, bp_error* error) {
  try {
    const std::lock_guard lock(device.mutex);
    device.streams[*stream] = false;
    return BP_OK;
  } catch (const std::bad_alloc&) {
    device.owner.next.stream_destroy(device.inner, std::exchange(*stream, nullptr));
    return write_error(error, BP_OUT_OF_MEMORY, "fault: host memory is exhausted; free some and call again");
  }
}

// Applies the schedule to one device slot call. `forward` calls the plugin's slot.
template <class Forward>
bp_status intercept(FaultDevice& device, Slot slot, bp_stream* stream, bp_error* error, Forward&& forward) {
  const FaultPlugin& plugin = device.owner;
  const Decision decision = decide(device.owner, slot, true);
  if (decision.delay.count() != 0) std::this_thread::sleep_for(decision.delay);
  const bool loses = decision.lose || decision.status == BP_DEVICE_LOST;
  bp_status status = BP_OK;
  {
    const std::shared_lock with_others(device.use);
    if (device.lost) return fail(plugin, slot, BP_DEVICE_LOST, "the layer has lost the device", error);
    if (stream != nullptr && failed(device, stream, decision.status == BP_EXECUTION_FAILED)) {
      // A wait for a failed stream may return only when the stream's work no longer accesses
      // memory, so the layer forwards stream_wait.
      status = slot == Slot::stream_wait ? forward() : BP_OK;
      if (status != BP_TIMEOUT)
        status = fail(plugin, slot, BP_EXECUTION_FAILED, "the layer made the stream fail", error);
    } else if (decision.status != BP_OK) {
      const bool passes = decision.status == BP_TIMEOUT || loses;
      bp_error ignored = fresh_error();
      if (slot == Slot::stream_wait && !passes) {
        (void)plugin.next.stream_wait(device.inner, stream, BP_WAIT_FOREVER, &ignored);
      }
      status = injected(plugin, slot, decision, error);
    } else {
      status = forward();
    }
  }
  if (loses) lose(device);
  return status;
}

// Finds the stream, the error record and the pointer to a new stream among a slot's arguments. `clear` sets a result to
// null.
struct FaultArguments {
  bp_stream* stream = nullptr;
  bp_error* error = nullptr;
  bp_stream** new_stream = nullptr;

  void see(bp_stream* argument) { stream = argument; }
  void see(bp_error* argument) { error = argument; }
  void see(bp_stream** argument) { new_stream = argument; }
  template <class T>
  void see(const T&) {}

  template <class T>
  static void clear(T** out) {
    if (out != nullptr) *out = nullptr;
  }
  template <class T>
  static void clear(const T&) {}
};

// If the layer makes a graph_end call fail, ends the capture in the plugin. Otherwise the plugin's
// stream would stay in capture.
template <Slot slot>
struct Unreached {
  template <class... Args>
  static void end(FaultDevice&, const Args&...) {}
};
template <>
struct Unreached<Slot::graph_end> {
  static void end(FaultDevice& device, bp_stream* stream, bp_graph**, bp_graph_info*, bp_error*) {
    const auto table = device.owner.inner_interface<bp_graph_api>(device.inner);
    bp_graph* graph = nullptr;
    bp_error ignored = fresh_error();
    if (table.graph_end == nullptr || table.graph_end(device.inner, stream, &graph, nullptr, &ignored) != BP_OK) return;
    table.graph_destroy(device.inner, graph);
  }
};

template <Slot slot, auto member>
struct FaultShim;
template <Slot slot, class Table, class... Args, bp_status (*Table::*member)(bp_device*, Args...)>
struct FaultShim<slot, member> {
  static bp_status call(bp_device* handle, Args... args) {
    FaultDevice& device = fault_of(handle);
    FaultArguments found;
    (found.see(args), ...);
    bool passed_on = false;
    const bp_status result = intercept(device, slot, found.stream, found.error, [&] {
      passed_on = true;
      const bp_status status = call_below(device.owner, device.inner, slot, member, found.error, args...);
      if (status != BP_OK || found.new_stream == nullptr || *found.new_stream == nullptr) return status;
      return add_stream(device, found.new_stream, found.error);
    });
    if (!passed_on) {
      Unreached<slot>::end(device, args...);
      (FaultArguments::clear(args), ...);
    }
    return result;
  }
};

// Forwards calls to the destroy slots, for which there are no fault rules. Removes a destroyed stream from `streams`.
template <auto member>
struct Pass;
template <class Table, class Handle, void (*Table::*member)(bp_device*, Handle*)>
struct Pass<member> {
  static void call(bp_device* handle, Handle* object) {
    FaultDevice& device = fault_of(handle);
    const std::shared_lock with_others(device.use);
    if constexpr (std::is_same_v<Handle, bp_stream>) {
      const std::lock_guard lock(device.mutex);
      device.streams.erase(object);
    }
    if (const auto slot = slot_below(device.owner, device.inner, member); slot != nullptr) slot(device.inner, object);
  }
};

void fault_close(bp_device* handle) {
  const std::unique_ptr<FaultDevice> device(&fault_of(handle));
  device->owner.next.close(device->inner);
}

// Applies the schedule to one call through the plugin's table.
template <class Forward>
bp_status plugin_slot(FaultPlugin& plugin, Slot slot, bp_error* error, Forward&& forward) {
  const Decision decision = decide(plugin, slot, false);
  if (decision.delay.count() != 0) std::this_thread::sleep_for(decision.delay);
  return decision.status != BP_OK ? injected(plugin, slot, decision, error) : forward();
}

bp_status fault_device_count(const bp_plugin* plugin, uint32_t* out, bp_error* error) {
  FaultPlugin& own = fault_of(plugin);
  if (out != nullptr) *out = 0;
  return plugin_slot(own, Slot::device_count, error, [&] { return own.inner->device_count(own.inner, out, error); });
}

bp_status fault_device_info(const bp_plugin* plugin, uint32_t index, bp_device_info* out, bp_error* error) {
  FaultPlugin& own = fault_of(plugin);
  return plugin_slot(own, Slot::device_info, error,
                     [&] { return own.inner->device_info(own.inner, index, out, error); });
}

bp_status fault_device_open(const bp_plugin* plugin, uint32_t index, const bp_device_desc* desc, bp_device** out,
                            bp_error* error) {
  FaultPlugin& own = fault_of(plugin);
  if (out != nullptr) *out = nullptr;
  return plugin_slot(own, Slot::device_open, error, [&]() -> bp_status {
    // The plugin itself refuses a null `out`.
    if (out == nullptr) return own.inner->device_open(own.inner, index, desc, out, error);
    std::unique_ptr<FaultDevice> device(new (std::nothrow) FaultDevice(own, nullptr));
    if (device == nullptr) return write_error(error, BP_OUT_OF_MEMORY, "fault: host memory is exhausted; free some");
    const bp_status status = own.inner->device_open(own.inner, index, desc, &device->inner, error);
    if (status != BP_OK || device->inner == nullptr) return status;
    *out = reinterpret_cast<bp_device*>(static_cast<WrappedDevice*>(device.release()));
    return BP_OK;
  });
}

void fault_shutdown(const bp_plugin* plugin) {
  const std::unique_ptr<FaultPlugin> own(&fault_of(plugin));
  own->inner->shutdown(own->inner);
}

}  // namespace

const bp_plugin* fault(const bp_plugin* inner, const bp_host* host, std::shared_ptr<const FaultSchedule> schedule) {
  auto made = std::make_unique<FaultPlugin>(inner, host, std::move(schedule));
  bp_plugin& table = made->table;
  table.device_count = fault_device_count;
  table.device_info = fault_device_info;
  table.device_open = fault_device_open;
  table.shutdown = fault_shutdown;
  made->api.close = fault_close;
  splice_device<FaultShim, Pass>(*made);
  return &made.release()->table;
}

}  // namespace backplane::core::layers
