// SPDX-License-Identifier: Apache-2.0
// Devices without a defect. Each device lacks some or all optional features, serializes work, or keeps pools.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "mutation.hpp"

namespace backplane::conformance::mutants {
namespace {

// Features that a device may lack, as bits of a mask.
enum Lack : uint32_t {
  kShared = 1u << 0,        // SHARED memory
  kHostMemory = 1u << 1,    // HOST memory, and therefore HOST operands
  kHostOperands = 1u << 2,  // operands in HOST memory; the device still has HOST memory
  kPageable = 1u << 3,      // copy_in and copy_out
  kAlignment = 1u << 4,     // alignments of more than 64 bytes
  kTiming = 1u << 5,
  kImport = 1u << 6,
  kAddresses = 1u << 7,
  kDeterministic = 1u << 8,
  kDeviceScalars = 1u << 9,
  kUnified = 1u << 10,
  kLarge = 1u << 11,  // buffers of more than 256 MiB
  kF16 = 1u << 12,
  kBf16 = 1u << 13,  // bf16; INFER requires f16 or bf16
  kF64 = 1u << 14,
  kI8 = 1u << 15,
  kSubnormals = 1u << 16,
  kSort = 1u << 17,  // the operator `sort`, without which a device does not reach INFER
  kNative = 1u << 18,
  kGraphs = 1u << 19,
  kPeer = 1u << 20,
  kExternal = 1u << 21,
  kPacks = 1u << 22,
  kWideI64 = 1u << 23,    // i64 beyond the requirements of INFER
  kTraining = 1u << 24,   // the primitives of TRAIN, without which a device does not reach TRAIN
  kBroadcast = 1u << 25,  // `select` with a broadcast condition, without which a device does not reach INFER
};
// All optional features that a device may lack together. kPageable is excluded, because a device
// without HOST memory needs pageable copies. kF16 is excluded, because INFER requires f16 or bf16.
constexpr uint32_t kAll = (0x1FFFFu | kNative | kGraphs | kPeer | kExternal | kPacks) & ~uint32_t{kPageable | kF16};

constexpr uint64_t kLargest = uint64_t{256} << 20;

// The features that the plugin lacks. A process has one plugin, so a global variable suffices.
uint32_t lacks = 0;
bool lack(uint32_t what) { return (lacks & what) != 0; }

bool offers(uint32_t kind) {
  return !(kind == BP_MEMORY_SHARED && lack(kShared)) && !(kind == BP_MEMORY_HOST && lack(kHostMemory));
}

bp_status device_info(const bp_plugin* plugin, uint32_t index, bp_device_info* out, bp_error* error) {
  const bp_status status = honest_plugin().device_info(plugin, index, out, error);
  if (status != BP_OK) return status;
  for (const uint32_t kind : {BP_MEMORY_HOST, BP_MEMORY_SHARED}) {
    if (!offers(kind)) out->memory_kinds &= ~(uint64_t{1} << kind), out->dlpack_type[kind] = 0;
  }
  const auto withdraw = [&](uint32_t what, uint64_t capability) {
    if (lack(what)) out->capabilities &= ~capability;
  };
  withdraw(kHostMemory | kHostOperands, BP_CAP_HOST_OPERANDS);
  withdraw(kTiming, BP_CAP_TIMING);
  withdraw(kAddresses, BP_CAP_PROCESS_ADDRESSES);
  withdraw(kDeterministic, BP_CAP_DETERMINISTIC);
  withdraw(kUnified, BP_CAP_UNIFIED_MEMORY);
  if (lack(kSubnormals)) out->capabilities |= BP_CAP_FTZ_F32;
  if (lack(kLarge)) out->max_buffer_bytes = kLargest;
  return BP_OK;
}

bp_status import_as_host(bp_device* device, const bp_import_desc* desc, uint32_t* out_kind, bp_buffer** out,
                         bp_error* error) {
  const auto* honest =
      static_cast<const bp_import_api*>(DeviceTable<HostDevice>::interface(nullptr, BP_INTERFACE_IMPORT, 1));
  const bp_status status = honest->import_memory(device, desc, out_kind, out, error);
  if (status == BP_OK && buffer_of(*out).kind == BP_MEMORY_SHARED) {
    buffer_of(*out).kind = BP_MEMORY_HOST;
    *out_kind = BP_MEMORY_HOST;
  }
  return status;
}

bp_status wrap_as_device(bp_device* device, const bp_native_handle* native, uint32_t* out_kind, bp_buffer** out,
                         bp_error* error) {
  const bp_status status = NativeTable<HostDevice>::table.buffer_wrap(device, native, out_kind, out, error);
  if (status == BP_OK) buffer_of(*out).kind = *out_kind = BP_MEMORY_DEVICE;
  return status;
}

bp_status external_of_offered(bp_device* device, const bp_buffer_desc* desc, const char* type, bp_buffer** out,
                              bp_error* error) {
  const bool known = desc != nullptr && out != nullptr && desc->struct_size >= BP_BUFFER_DESC_MIN_SIZE;
  if (!known || offers(desc->kind))
    return ExternalTable<HostDevice>::table.buffer_create_external(device, desc, type, out, error);
  *out = nullptr;
  return report(error, BP_UNSUPPORTED, "buffer_create_external: this device has no memory of that kind");
}
bp_status external_as_device(bp_device* device, const bp_external_handle* handle, uint32_t* out_kind, bp_buffer** out,
                             bp_error* error) {
  const bp_status status = ExternalTable<HostDevice>::table.buffer_import(device, handle, out_kind, out, error);
  if (status == BP_OK && lack(kShared)) buffer_of(*out).kind = *out_kind = BP_MEMORY_DEVICE;
  return status;
}

const void* get_interface(const bp_plugin* plugin, bp_device* device, const char* name, uint32_t version) {
  static constexpr bp_import_api kAsHost{sizeof(bp_import_api), 0, import_as_host};
  static const bp_native_api kAsDevice = [] {
    bp_native_api copy = NativeTable<HostDevice>::table;
    copy.buffer_wrap = wrap_as_device;
    return copy;
  }();
  static const bp_external_api kOffered = [] {
    bp_external_api copy = ExternalTable<HostDevice>::table;
    copy.buffer_create_external = external_of_offered;
    copy.buffer_import = external_as_device;
    return copy;
  }();
  const void* table = honest_plugin().get_interface(plugin, device, name, version);
  if (table == nullptr || device == nullptr || name == nullptr) return table;
  if (std::string_view(name) == BP_INTERFACE_PACK) return lack(kPacks) ? nullptr : table;
  if (std::string_view(name) == BP_INTERFACE_PEER) return lack(kPeer) ? nullptr : table;
  if (std::string_view(name) == BP_INTERFACE_EXTERNAL) return lack(kExternal) ? nullptr : &kOffered;
  if (std::string_view(name) == BP_INTERFACE_NATIVE) {
    if (lack(kNative)) return nullptr;
    return lack(kShared) ? &kAsDevice : table;
  }
  if (std::string_view(name) == BP_INTERFACE_GRAPH) return lack(kGraphs) ? nullptr : table;
  if (std::string_view(name) != BP_INTERFACE_IMPORT) return table;
  if (lack(kImport)) return nullptr;
  return lack(kShared) ? &kAsHost : table;
}

bp_status memory_info(bp_device* device, uint32_t kind, bp_memory_info* out, bp_error* error) {
  if (!offers(kind)) return report(error, BP_UNSUPPORTED, "memory_info: this device has no memory of that kind");
  return kHonest.memory_info(device, kind, out, error);
}

bp_status buffer_create(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error) {
  const auto refuse = [&](bp_status status, const char* why) {
    *out = nullptr;
    return report(error, status, why);
  };
  if (desc == nullptr || out == nullptr || desc->struct_size < BP_BUFFER_DESC_MIN_SIZE || desc->bytes == 0) {
    return kHonest.buffer_create(device, desc, out, error);
  }
  if (!offers(desc->kind)) return refuse(BP_UNSUPPORTED, "buffer_create: this device has no memory of that kind");
  if (lack(kAlignment) && desc->alignment > HostMemory::kAlignment) {
    return refuse(BP_UNSUPPORTED, "buffer_create: this device aligns buffers to 64 bytes");
  }
  if (lack(kLarge) && desc->bytes > kLargest) {
    return refuse(BP_OUT_OF_MEMORY, "buffer_create: this device has buffers of 256 MiB at most");
  }
  return kHonest.buffer_create(device, desc, out, error);
}

bp_status event_create(bp_device* device, uint32_t flags, bp_event** out, bp_error* error) {
  if ((flags & BP_EVENT_TIMING) == 0) return kHonest.event_create(device, flags, out, error);
  *out = nullptr;
  return report(error, BP_UNSUPPORTED, "event_create: this device does not time events");
}

bool any_operand_in(uint64_t dtypes, const bp_op_desc& desc) {
  const auto is_in = [&](const bp_tensor_desc& view) { return rules::in_set(dtypes, view.dtype); };
  return std::any_of(desc.inputs, desc.inputs + desc.input_count, is_in) ||
         std::any_of(desc.outputs, desc.outputs + desc.output_count, is_in);
}

// Returns whether the descriptor uses i64 in a way that no profile requires.
bool wide_i64(const bp_op_desc& desc) {
  // INFER requires casts between i64 and the 16-bit float that it requires.
  constexpr uint64_t kOptional = BP_DTYPE_BIT(BP_I8) | BP_DTYPE_BIT(BP_F64);
  if (!any_operand_in(BP_DTYPE_BIT(BP_I64), desc)) return false;
  if (desc.op == BP_OP_CAST) return any_operand_in(kOptional, desc);
  if (desc.op != BP_OP_SCATTER) return rules::find_op(desc.op)->i64_profile == 0;
  const auto mode = static_cast<const bp_scatter_attributes*>(desc.attributes)->mode;
  return desc.outputs[0].dtype == BP_I64 && mode != BP_SCATTER_SET;
}

// Returns whether the descriptor needs a primitive that only TRAIN requires.
bool only_training(const bp_op_desc& desc) {
  if (desc.op != BP_OP_SCATTER) return rules::find_op(desc.op)->profile == BP_PROFILE_TRAIN;
  bp_scatter_attributes attributes = {};  // fields that the caller's struct lacks are zero
  const auto* given = static_cast<const bp_scatter_attributes*>(desc.attributes);
  std::memcpy(&attributes, given, std::min<size_t>(given->struct_size, sizeof(attributes)));
  return attributes.mode == BP_SCATTER_ADD && rules::in_set(BP_SET_FLOATS, desc.outputs[0].dtype);
}

// Returns whether only some dimensions of the condition of `select` have stride 0. Only decompositions create such
// descriptors of rank 3 or more.
bool broadcast_condition(const bp_op_desc& desc) {
  if (desc.op != BP_OP_SELECT || desc.inputs[0].rank < 3) return false;
  const bp_tensor_desc& condition = desc.inputs[0];
  const auto zeros = std::count(condition.strides, condition.strides + condition.rank, 0);
  return zeros != 0 && zeros != condition.rank;
}

// Returns the reason why a legal descriptor is declined, or null if it is accepted.
const char* refusal(const bp_op_desc& desc) {
  if (lack(kDeterministic) && (desc.flags & BP_OP_FLAG_DETERMINISTIC) != 0) return "DETERMINISTIC is not honoured";
  if (lack(kDeviceScalars) && (desc.flags & BP_OP_FLAG_DEVICE_SCALARS) != 0) return "scalars come from the host only";
  if (lack(kSort) && desc.op == BP_OP_SORT) return "there is no sort";
  if (lack(kWideI64) && wide_i64(desc)) return "i64 is supported only where INFER requires it";
  if (lack(kTraining) && only_training(desc)) return "there are no operators for training";
  if (lack(kBroadcast) && broadcast_condition(desc)) return "select supports no broadcast condition";
  uint64_t absent = 0;
  if (lack(kF16)) absent |= BP_DTYPE_BIT(BP_F16);
  if (lack(kBf16)) absent |= BP_DTYPE_BIT(BP_BF16);
  if (lack(kF64)) absent |= BP_DTYPE_BIT(BP_F64);
  if (lack(kI8)) absent |= BP_DTYPE_BIT(BP_I8);
  return any_operand_in(absent, desc) ? "a dtype is absent" : nullptr;
}

bp_status plan_create(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info, bp_error* error) {
  const bp_status status = kHonest.plan_create(device, desc, out, info, error);
  if (status != BP_OK) return status;
  const char* why = refusal(*desc);
  if (why == nullptr) return BP_OK;
  if (out != nullptr) kHonest.plan_destroy(device, std::exchange(*out, nullptr));
  return report(error, BP_UNSUPPORTED, why, desc->op);
}

template <uint32_t kLacks>
constexpr Mutation without() {
  Mutation mutation;
  mutation.plugin = [](bp_plugin& plugin) {
    lacks = kLacks;
    plugin.device_info = device_info;
    plugin.get_interface = get_interface;
  };
  mutation.api = [](bp_device_api& api) {
    constexpr auto kLack = [](uint32_t what) { return (kLacks & what) == what; };
    api.memory_info = memory_info;
    api.buffer_create = buffer_create;
    api.plan_create = plan_create;
    api.event_create = kLack(kTiming) ? event_create : api.event_create;
    if (kLack(kTiming)) api.event_elapsed = nullptr;
    if (kLack(kPageable)) api.copy_in = nullptr, api.copy_out = nullptr;
    if (kLack(kHostMemory | kShared)) api.buffer_map = nullptr;
    if (kLack(kAddresses)) api.buffer_address = nullptr;
  };
  if constexpr ((kLacks & kSubnormals) != 0) {
    mutation.kernels = [](Kernels& kernels) { defect::flushes_as_declared.kernels(kernels); };
  }
  return mutation;
}

// ---- Devices without concurrency

// A slot that enqueues work and then waits until the work has completed.
template <auto kSlot>
struct AtOnce;
template <class... A, bp_status (*bp_device_api::*kSlot)(bp_device*, bp_stream*, A...)>
struct AtOnce<kSlot> {
  static bp_status run(bp_device* device, bp_stream* stream, A... arguments) {
    const bp_status status = (kHonest.*kSlot)(device, stream, arguments...);
    if (status == BP_OK) kHonest.stream_wait(device, stream, BP_WAIT_FOREVER, nullptr);
    return status;
  }
};
// Omits bp.graph, because a graph cannot capture calls of AtOnce, which waits, or of InOneQueue,
// which uses an event of its own.
const void* no_graphs(const bp_plugin* plugin, bp_device* device, const char* name, uint32_t version) {
  if (name != nullptr && std::string_view(name) == BP_INTERFACE_GRAPH) return nullptr;
  return honest_plugin().get_interface(plugin, device, name, version);
}
bp_status says_synchronous(const bp_plugin* plugin, uint32_t index, bp_device_info* out, bp_error* error) {
  const bp_status status = honest_plugin().device_info(plugin, index, out, error);
  if (status == BP_OK) out->capabilities |= BP_CAP_SYNCHRONOUS;
  return status;
}

// A slot that enqueues a command on a device with one queue. Each command waits for all earlier
// commands on any stream.
template <auto kSlot>
struct InOneQueue;
std::mutex queue_mutex;
bp_event* queue_event() {
  static auto* const event = new HostEvent(false);
  return reinterpret_cast<bp_event*>(event);
}
template <class... A, bp_status (*bp_device_api::*kSlot)(bp_device*, bp_stream*, A...)>
struct InOneQueue<kSlot> {
  static bp_status run(bp_device* device, bp_stream* stream, A... arguments) {
    static bp_event* const event = queue_event();
    const std::lock_guard lock(queue_mutex);
    bp_status status = kHonest.stream_wait_event(device, stream, event, nullptr);
    if (status == BP_OK) status = (kHonest.*kSlot)(device, stream, arguments...);
    if (status == BP_OK) status = kHonest.event_record(device, event, stream, nullptr);
    return status;
  }
};

template <template <auto> class How>
void replace_enqueues(bp_device_api& api) {
  api.copy = How<&bp_device_api::copy>::run;
  api.copy_in = How<&bp_device_api::copy_in>::run;
  api.copy_out = How<&bp_device_api::copy_out>::run;
  api.plan_execute = How<&bp_device_api::plan_execute>::run;
}

// ---- Pools

// Allocates and touches a chunk every kCalls calls, up to kChunks chunks. The chunks are never
// freed.
template <int kCalls, int kChunks, size_t kBytes>
void grow_pool() {
  static std::atomic<int> calls{0};
  const int call = calls.fetch_add(1, std::memory_order_relaxed);
  if (call >= kCalls * kChunks || call % kCalls != 0) return;
  auto* const chunk = static_cast<volatile char*>(std::malloc(kBytes));
  for (size_t at = 0; chunk != nullptr && at < kBytes; at += 1024) chunk[at] = 1;
}
// Allocates and touches kChunks chunks. The number of calls between two chunks doubles each time.
template <int kChunks, size_t kBytes>
void grow_slower() {
  static std::atomic<uint32_t> calls{0};
  const uint32_t call = calls.fetch_add(1, std::memory_order_relaxed);
  if (call >= 16 && call < (16u << kChunks) && (call & (call - 1)) == 0) {
    auto* const chunk = static_cast<volatile char*>(std::malloc(kBytes));
    for (size_t at = 0; chunk != nullptr && at < kBytes; at += 1024) chunk[at] = 1;
  }
}
void grow_descriptors() {
  static std::atomic<int> calls{0};
  if (const int call = calls.fetch_add(1); call % 100 == 0 && call < 1600)
    (void)!open("/dev/null", O_RDONLY | O_CLOEXEC);
}
template <auto kSlot, void (*kGrow)()>
struct Pooled;
template <class... A, bp_status (*bp_device_api::*kSlot)(A...), void (*kGrow)()>
struct Pooled<kSlot, kGrow> {
  static bp_status run(A... arguments) {
    kGrow();
    return (kHonest.*kSlot)(arguments...);
  }
};
// Keeps this library loaded after the plugin is closed, because a driver's pools also outlive the plugin.
void stay() {
  Dl_info library{};
  if (dladdr(reinterpret_cast<void*>(&stay), &library) != 0)
    (void)dlopen(library.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}
void keep_pools(bp_device_api& api) {
  stay();
  api.plan_create = Pooled<&bp_device_api::plan_create, grow_pool<300, 20, 4096>>::run;
  api.plan_execute = Pooled<&bp_device_api::plan_execute, grow_pool<200, 24, 65536>>::run;
  api.event_record = Pooled<&bp_device_api::event_record, grow_pool<64, 100, 512>>::run;
  api.event_wait = Pooled<&bp_device_api::event_wait, grow_slower<14, 2048>>::run;
  api.stream_wait = Pooled<&bp_device_api::stream_wait, grow_pool<50, 100, 256>>::run;
  api.stream_create = Pooled<&bp_device_api::stream_create, grow_pool<1, 200, 32768>>::run;
  api.buffer_create = Pooled<&bp_device_api::buffer_create, grow_slower<12, 262144>>::run;
  api.event_create = Pooled<&bp_device_api::event_create, grow_descriptors>::run;
  api.copy = Pooled<&bp_device_api::copy, grow_pool<128, 32, 8192>>::run;
}

}  // namespace

const Mutation defect::serial{.plugin =
                                  [](bp_plugin& plugin) {
                                    plugin.device_info = says_synchronous;
                                    plugin.get_interface = no_graphs;
                                  },
                              .api = replace_enqueues<AtOnce>};
const Mutation defect::one_queue{.plugin = [](bp_plugin& plugin) { plugin.get_interface = no_graphs; },
                                 .api = replace_enqueues<InOneQueue>};
const Mutation defect::keeps_pools{.api = keep_pools};
const Mutation defect::without_shared_memory = without<kShared>();
const Mutation defect::without_host_memory = without<kHostMemory>();
const Mutation defect::without_mapped_memory = without<kShared | kHostMemory | kUnified>();
const Mutation defect::without_host_operands = without<kHostOperands>();
const Mutation defect::without_pageable_copies = without<kPageable>();
const Mutation defect::without_wider_alignment = without<kAlignment>();
const Mutation defect::without_timing = without<kTiming>();
const Mutation defect::without_import = without<kImport>();
const Mutation defect::without_native_handles = without<kNative>();
const Mutation defect::without_graphs = without<kGraphs>();
const Mutation defect::without_packs = without<kPacks>();
const Mutation defect::without_peers = without<kPeer>();
const Mutation defect::without_external = without<kExternal>();
const Mutation defect::without_addresses = without<kAddresses>();
const Mutation defect::without_determinism = without<kDeterministic>();
const Mutation defect::without_device_scalars = without<kDeviceScalars>();
const Mutation defect::without_unified_memory = without<kUnified>();
const Mutation defect::without_large_buffers = without<kLarge>();
const Mutation defect::without_f16 = without<kF16>();
const Mutation defect::without_bf16 = without<kBf16>();
const Mutation defect::without_f64 = without<kF64>();
const Mutation defect::without_i8 = without<kI8>();
const Mutation defect::without_wide_i64 = without<kWideI64>();
const Mutation defect::without_sort = without<kSort>();
const Mutation defect::without_training = without<kTraining>();
const Mutation defect::without_broadcast_select = without<kBroadcast>();
const Mutation defect::without_options = without<kAll>();

}  // namespace backplane::conformance::mutants
