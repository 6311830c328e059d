// SPDX-License-Identifier: Apache-2.0
// Implements the C functions for the library itself and for devices.
#include <backplane/backplane.h>

#include <cstring>

#include "base/handle.hpp"
#include "base/structs.hpp"
#include "loading/device.hpp"
#include "loading/registry.hpp"

using namespace backplane::core;

const char* bph_version() { return BACKPLANE_VERSION; }
uint32_t bph_abi_version() { return BP_ABI_VERSION; }

const char* bph_status_name(bp_status status) {
  switch (status) {
    case BP_OK:
      return "OK";
    case BP_INVALID_ARGUMENT:
      return "INVALID_ARGUMENT";
    case BP_UNSUPPORTED:
      return "UNSUPPORTED";
    case BP_OUT_OF_MEMORY:
      return "OUT_OF_MEMORY";
    case BP_NOT_READY:
      return "NOT_READY";
    case BP_TIMEOUT:
      return "TIMEOUT";
    case BP_DEVICE_LOST:
      return "DEVICE_LOST";
    case BP_UNAVAILABLE:
      return "UNAVAILABLE";
    case BP_ABI_MISMATCH:
      return "ABI_MISMATCH";
    case BP_EXECUTION_FAILED:
      return "EXECUTION_FAILED";
    default:
      return "INTERNAL";
  }
}

namespace {

// Stores the device's handle in `*out`. The handle owns the reference to the device.
void give(Ref<Device> device, bph_device** out) {
  *out = reinterpret_cast<bph_device*>(device->public_handle);
  (void)device.detach();
}

template <class T>
void require_out(T* out, const char* function) {
  if (out == nullptr) throw Error(BP_INVALID_ARGUMENT, "{}: the output pointer is null; pass one", function);
  *out = {};
}

}  // namespace

bp_status bph_device_open(bph_registry* registry, const char* name, const bph_device_desc* desc, bph_device** out,
                          bp_error* error) {
  return guard(error, [&] {
    require_out(out, "bph_device_open");
    Registry& from = require<Registry>(registry, "bph_device_open");
    const Registry::Choice choice = from.choose_device(name);
    give(Device::open(choice.plugin, choice.index, desc), out);
  });
}

bp_status bph_plugin_device_open(bph_plugin* plugin, uint32_t index, const bph_device_desc* desc, bph_device** out,
                                 bp_error* error) {
  return guard(error, [&] {
    require_out(out, "bph_plugin_device_open");
    Plugin& from = require<Plugin>(plugin, "bph_plugin_device_open");
    give(Device::open(Ref<Plugin>(&from), index, desc), out);
  });
}

void bph_device_release(bph_device* device) {
  void* object = HandleTable::instance().remove(HandleType::device, reinterpret_cast<uint64_t>(device));
  if (object == nullptr) return;
  static_cast<Device*>(object)->allocator.device_released();
  static_cast<Device*>(object)->release();
}

bp_status bph_device_get_info(bph_device* device, bp_device_info* out, bp_error* error) {
  return guard(error, [&] {
    write_output(out, require<Device>(device, "bph_device_get_info").info, "bph_device_get_info", "bp_device_info",
                 BP_DEVICE_INFO_MIN_SIZE);
  });
}

bp_status bph_device_name(bph_device* device, char* out, uint64_t size, bp_error* error) {
  return guard(error, [&] {
    const Device& target = require<Device>(device, "bph_device_name");
    if (out == nullptr || size <= target.name.size()) {
      throw Error(BP_INVALID_ARGUMENT, "bph_device_name: \"{}\" needs {} bytes, {} given", target.name,
                  target.name.size() + 1, out == nullptr ? 0 : size);
    }
    std::memcpy(out, target.name.c_str(), target.name.size() + 1);
  });
}

bp_status bph_device_memory_info(bph_device* device, uint32_t kind, bp_memory_info* out, bp_error* error) {
  return guard(error, [&] {
    Device& target = require<Device>(device, "bph_device_memory_info");
    bp_memory_info info = {};
    info.struct_size = sizeof(info);
    bp_error reported = fresh_error();
    const bp_status status = target.api->memory_info(target.handle, kind, &info, &reported);
    if (status != BP_OK) throw Error::from_plugin(status, reported, target.name.c_str());
    write_output(out, info, "bph_device_memory_info", "bp_memory_info", BP_MEMORY_INFO_MIN_SIZE);
  });
}

bp_status bph_device_get_interface(bph_device* device, const char* name, uint32_t version, const void** out_table,
                                   bp_device** out_device, bp_error* error) {
  return guard(error, [&] {
    require_out(out_table, "bph_device_get_interface");
    require_out(out_device, "bph_device_get_interface");
    Device& target = require<Device>(device, "bph_device_get_interface");
    if (name == nullptr) throw Error(BP_INVALID_ARGUMENT, "bph_device_get_interface: the name is null; pass one");
    const void* table = target.plugin->own_interface(target.handle, name, version, out_device);
    if (table == nullptr) {
      throw Error(BP_UNSUPPORTED, "{}: the plugin has no interface \"{:.64}\" of version {}", target.name, name,
                  version);
    }
    *out_table = table;
  });
}

bp_status bph_device_stats(bph_device* device, bph_stats* out, bp_error* error) {
  return guard(error, [&] {
    Device& target = require<Device>(device, "bph_device_stats");
    const PlanCacheStats plans = target.plans.stats();
    const AllocatorStats memory = target.allocator.stats();
    const auto read = [](const std::atomic<uint64_t>& counter) { return counter.load(std::memory_order_relaxed); };
    bph_stats stats = {};
    stats.executions = plans.executions;
    stats.plan_hits = plans.hits;
    stats.plan_class_hits = plans.class_hits;
    stats.plans_created = plans.created;
    stats.plans_specialized = plans.specialize;
    stats.plans_evicted = plans.evicted;
    stats.plan_entries = plans.entries;
    stats.staged_operands = read(target.counters.staged_operands);
    stats.staged_bytes = read(target.counters.staged_bytes);
    stats.host_staged_copies = read(target.counters.host_staged_copies);
    stats.host_staged_bytes = read(target.counters.host_staged_bytes);
    stats.fallback_executions = read(target.counters.fallback_executions);
    stats.fallback_bytes = read(target.counters.fallback_bytes);
    stats.allocations = memory.allocations;
    stats.allocations_cached = memory.allocations_cached;
    stats.bytes_in_use = memory.bytes_in_use;
    stats.bytes_in_use_peak = memory.bytes_in_use_peak;
    stats.bytes_reserved = memory.bytes_reserved;
    stats.bytes_reserved_peak = memory.bytes_reserved_peak;
    stats.trims = memory.trims;
    stats.out_of_memory_retries = memory.out_of_memory_retries;
    stats.workspace_bytes = read(target.counters.workspace_bytes);
    stats.decomposed_executions = read(target.counters.decomposed_executions);
    stats.plugin_faults = read(target.counters.plugin_faults);
    stats.peer_copies = read(target.counters.peer_copies);
    stats.peer_bytes = read(target.counters.peer_bytes);
    stats.streams_revived = read(target.counters.streams_revived);
    write_output(out, stats, "bph_device_stats", "bph_stats");
  });
}

bp_status bph_device_trim(bph_device* device, uint32_t plans, uint64_t* out_bytes, bp_error* error) {
  return guard(error, [&] {
    Device& target = require<Device>(device, "bph_device_trim");
    if (out_bytes != nullptr) *out_bytes = 0;
    if (plans > 1) throw Error(BP_INVALID_ARGUMENT, "bph_device_trim: plans is {}; it is 0 or 1", plans);
    if (plans == 1) target.plans.clear();
    const uint64_t freed = target.allocator.trim();
    if (out_bytes != nullptr) *out_bytes = freed;
  });
}
