// SPDX-License-Identifier: Apache-2.0
// An open device: the plugin's handle and table, and core's allocator, plan cache and counters.
#pragma once

#include <backplane/backplane.h>

#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/handle.hpp"
#include "base/ref.hpp"
#include "dispatch/plan_cache.hpp"
#include "loading/plugin.hpp"
#include "memory/allocator.hpp"

namespace backplane::core {

class Stream;

// Counters of a device, which bph_device_stats reads. Host API calls increment the counters with
// relaxed memory order. The allocator and the plan cache have separate counters.
struct DeviceCounters {
  std::atomic<uint64_t> staged_operands{0}, staged_bytes{0};
  std::atomic<uint64_t> host_staged_copies{0}, host_staged_bytes{0};
  std::atomic<uint64_t> fallback_executions{0}, fallback_bytes{0};
  std::atomic<uint64_t> decomposed_executions{0};
  std::atomic<uint64_t> plugin_faults{0};
  std::atomic<uint64_t> peer_copies{0}, peer_bytes{0};
  std::atomic<uint64_t> streams_revived{0};
  std::atomic<uint64_t> workspace_bytes{0};  // current sum over all streams
};

class Fallback;

class Device final : public Object {
 public:
  static constexpr HandleType kHandleType = HandleType::device;

  static Ref<Device> open(Ref<Plugin> plugin, uint32_t index, const bph_device_desc* desc);

  // Parents are declared first, because members are destroyed in reverse order.
  Ref<Plugin> plugin;
  const bp_device_api* api = nullptr;  // core's copy of the plugin's table
  bp_device* handle = nullptr;
  const pid_t process = getpid();  // a forked child must not call its parent's device
  // Closes the plugin's device after the members that follow `closer` are destroyed.
  struct Closer {
    Device& device;
    ~Closer();
  } closer{*this};
  const std::string name;  // "plugin:index"
  const bp_device_info info;
  // Log2 of the alignment of core's temporaries. A device may refuse an alignment above
  // info.alignment.
  const uint8_t full_alignment_log2 = full_alignment_log2_of(info.alignment);
  uint64_t full_alignment() const noexcept { return uint64_t{1} << full_alignment_log2; }
  uint64_t public_handle = 0;
  uint32_t fallback_policy = BPH_FALLBACK_ERROR;
  std::string fallback_device;
  bool native_composites = true;
  uint32_t operand_kinds = 0;  // mask of 1 << BP_MEMORY_* for the legal memory kinds of operands
  DeviceCounters counters;
  // Indexed by operator id. True after core has logged a plugin fault of the operator
  // (bph_stats.plugin_faults).
  std::atomic<bool> warned_of_refusal[BP_OP_LIMIT] = {};
  PlanCache plans;
  Allocator allocator;

  bool of_this_process() const noexcept { return process == getpid(); }
  bool synchronous() const noexcept { return (info.capabilities & BP_CAP_SYNCHRONOUS) != 0; }

  // Guards the live streams. No thread holds this mutex during a plugin call.
  std::mutex streams_mutex;
  std::vector<Stream*> streams;

  std::mutex fallback_mutex;
  std::shared_ptr<Fallback> fallback;

  ~Device() override;

 private:
  Device(Ref<Plugin> owner, uint32_t index, const bph_device_desc& desc);
};

}  // namespace backplane::core
