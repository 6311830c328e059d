// SPDX-License-Identifier: Apache-2.0
// Implements the slots of the puppet.
#include "puppet.hpp"

#include <cstdlib>
#include <cstring>

struct bp_device {
  backplane::core::test::Puppet* puppet;
};
struct bp_buffer {
  uint32_t kind;
  char* memory;
  bool owned;
};
struct bp_stream {
  int unused;
};
struct bp_event {
  int unused;
};
struct bp_graph {
  int unused = 0;
};
struct bp_plan {
  int unused;
};
struct bp_semaphore {
  int unused;
};
struct bp_pack {
  int unused;
};

namespace backplane::core::test {

namespace {

Puppet& of(const bp_plugin* plugin) { return *reinterpret_cast<const Puppet::Instance*>(plugin)->puppet; }
Puppet& of(bp_device* device) { return *device->puppet; }

struct Answer {
  bp_status status = BP_OK;
  bool null = false;  // return OK without a result
  Puppet::Effects effects;
};

// Counts the call, and applies the failure and the effects that the test set. Returns true if the
// slot should succeed.
bool enter(Puppet& puppet, const char* slot, bp_error* error, Answer* answer) {
  {
    const std::lock_guard lock(puppet.mutex);
    ++puppet.calls[slot];
    if (auto effects = puppet.next.extract(slot)) answer->effects = std::move(effects.mapped());
  }
  const auto outcome = puppet.take(slot);
  if (outcome) answer->status = outcome->status;
  answer->null = outcome && outcome->status == BP_OK;
  const auto& [fill, touch, keep_out, same, act] = answer->effects;
  if (act) act();
  const bool silent = answer->status == BP_OK || answer->status == BP_NOT_READY || answer->status == BP_TIMEOUT;
  if (silent ? touch : fill) report(error, answer->status, outcome ? outcome->message : "a touched record");
  return answer->status == BP_OK;
}

bp_status simple(bp_device* device, const char* slot, bp_error* error) {
  Answer answer;
  enter(*device->puppet, slot, error, &answer);
  return answer.status;
}

template <class Handle, class Make>
bp_status make(Puppet& puppet, const char* slot, Handle** out, bp_error* error, Make&& maker) {
  static Handle* latest = nullptr;
  Answer answer;
  const bool good = enter(puppet, slot, error, &answer);
  if (out == nullptr) return BP_INVALID_ARGUMENT;
  if (!good) {
    if (!answer.effects.keep_out) *out = nullptr;
    return answer.status;
  }
  if (answer.null) {
    *out = nullptr;
  } else if (answer.effects.same) {
    *out = latest;
  } else {
    *out = latest = maker();
    ++puppet.alive;
  }
  return BP_OK;
}

template <class Handle>
void end(bp_device* device, const char* slot, Handle* handle) {
  Answer answer;
  enter(*device->puppet, slot, nullptr, &answer);
  --device->puppet->alive;
  delete handle;
}

bp_status device_count(const bp_plugin* plugin, uint32_t* out, bp_error* error) {
  Answer answer;
  *out = enter(of(plugin), "device_count", error, &answer) ? 1 : 0;
  return answer.status;
}
bp_status device_info(const bp_plugin* plugin, uint32_t, bp_device_info* out, bp_error* error) {
  Answer answer;
  if (!enter(of(plugin), "device_info", error, &answer)) return answer.status;
  out->alignment = 256;
  out->max_buffer_bytes = 1 << 20;
  out->memory_kinds = 7;
  out->capabilities = of(plugin).capabilities;
  return BP_OK;
}
bp_status device_open(const bp_plugin* plugin, uint32_t, const bp_device_desc*, bp_device** out, bp_error* error) {
  return make(of(plugin), "device_open", out, error, [&] { return new bp_device{&of(plugin)}; });
}
const void* get_interface(const bp_plugin* plugin, bp_device*, const char* name, uint32_t version) {
  ++of(plugin).calls["get_interface"];
  if (version != 1) return nullptr;
  if (std::strcmp(name, BP_INTERFACE_NATIVE) == 0) return &of(plugin).native;
  if (std::strcmp(name, BP_INTERFACE_GRAPH) == 0) return &of(plugin).graph;
  if (std::strcmp(name, BP_INTERFACE_PEER) == 0) return &of(plugin).peer;
  if (std::strcmp(name, BP_INTERFACE_EXTERNAL) == 0) return &of(plugin).external;
  if (std::strcmp(name, BP_INTERFACE_PACK) == 0) return &of(plugin).pack;
  return std::strcmp(name, BP_INTERFACE_IMPORT) == 0 ? &of(plugin).import : nullptr;
}
void shutdown(const bp_plugin* plugin) { of(plugin).ended = true; }

void close(bp_device* device) {
  ++of(device).calls["close"];
  --of(device).alive;
  delete device;
}
bp_status memory_info(bp_device* device, uint32_t, bp_memory_info* out, bp_error* error) {
  *out = of(device).memory;
  return simple(device, "memory_info", error);
}
bp_status buffer_create(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error) {
  return make(of(device), "buffer_create", out, error, [&] {
    const uint64_t alignment = desc->alignment != 0 ? desc->alignment : 256;
    void* memory = std::aligned_alloc(alignment, (desc->bytes + alignment - 1) / alignment * alignment);
    return new bp_buffer{desc->kind, static_cast<char*>(memory), true};
  });
}
void buffer_destroy(bp_device* device, bp_buffer* buffer) {
  if (buffer->owned) std::free(buffer->memory);
  end(device, "buffer_destroy", buffer);
}
bp_status buffer_map(bp_device* device, bp_buffer* buffer, void** out, bp_error* error) {
  Answer answer;
  const bool good = enter(of(device), "buffer_map", error, &answer);
  *out = good && !answer.null ? buffer->memory + of(device).map_shift : nullptr;
  return answer.status;
}
bp_status stream_create(bp_device* device, const bp_stream_desc*, bp_stream** out, bp_error* error) {
  return make(of(device), "stream_create", out, error, [] { return new bp_stream{}; });
}
void stream_destroy(bp_device* device, bp_stream* stream) { end(device, "stream_destroy", stream); }
bp_status stream_wait(bp_device* device, bp_stream*, uint64_t, bp_error* error) {
  return simple(device, "stream_wait", error);
}
bp_status event_create(bp_device* device, uint32_t, bp_event** out, bp_error* error) {
  return make(of(device), "event_create", out, error, [] { return new bp_event{}; });
}
void event_destroy(bp_device* device, bp_event* event) { end(device, "event_destroy", event); }
bp_status event_record(bp_device* device, bp_event*, bp_stream*, bp_error* error) {
  return simple(device, "event_record", error);
}
bp_status stream_wait_event(bp_device* device, bp_stream*, bp_event*, bp_error* error) {
  return simple(device, "stream_wait_event", error);
}
bp_status event_wait(bp_device* device, bp_event*, uint64_t, bp_error* error) {
  return simple(device, "event_wait", error);
}
bp_status event_elapsed(bp_device* device, bp_event*, bp_event*, int64_t* out, bp_error* error) {
  *out = 1;
  return simple(device, "event_elapsed", error);
}
bp_status copy(bp_device* device, bp_stream*, bp_buffer*, uint64_t, bp_buffer*, uint64_t, uint64_t, bp_error* error) {
  return simple(device, "copy", error);
}
bp_status copy_in(bp_device* device, bp_stream*, bp_buffer*, uint64_t, const void*, uint64_t, bp_error* error) {
  return simple(device, "copy_in", error);
}
bp_status copy_out(bp_device* device, bp_stream*, void*, bp_buffer*, uint64_t, uint64_t, bp_error* error) {
  return simple(device, "copy_out", error);
}
bp_status plan_create(bp_device* device, const bp_op_desc*, bp_plan** out, bp_plan_info* info, bp_error* error) {
  const uint32_t size = info->struct_size;
  *info = of(device).plan_info;
  info->struct_size = size;
  if (out == nullptr) return simple(device, "plan_create", error);
  return make(of(device), "plan_create", out, error, [] { return new bp_plan{}; });
}
void plan_destroy(bp_device* device, bp_plan* plan) { end(device, "plan_destroy", plan); }
bp_status plan_execute(bp_device* device, bp_stream*, bp_plan*, const bp_execution*, bp_error* error) {
  return simple(device, "plan_execute", error);
}
bp_status plan_workspace(bp_device* device, bp_plan*, const bp_op_desc*, uint64_t* out, bp_error* error) {
  *out = of(device).workspace;
  return simple(device, "plan_workspace", error);
}
bp_status buffer_address(bp_device* device, bp_buffer* buffer, uint64_t* out, bp_error* error) {
  *out = of(device).address.value_or(reinterpret_cast<uint64_t>(buffer->memory));
  return simple(device, "buffer_address", error);
}
bp_status import_memory(bp_device* device, const bp_import_desc* desc, uint32_t* out_kind, bp_buffer** out,
                        bp_error* error) {
  *out_kind = of(device).import_kind;
  return make(of(device), "import_memory", out, error, [&] {
    return new bp_buffer{BP_MEMORY_SHARED, reinterpret_cast<char*>(desc->address), false};
  });
}
bp_status stream_native(bp_device* device, bp_stream*, bp_native_handle* out, bp_error* error) {
  *out = of(device).handle;
  return simple(device, "stream_native", error);
}
bp_status buffer_native(bp_device* device, bp_buffer*, bp_native_handle* out, bp_error* error) {
  *out = of(device).handle;
  return simple(device, "buffer_native", error);
}
bp_status event_native(bp_device* device, bp_event*, bp_native_handle* out, bp_error* error) {
  *out = of(device).handle;
  return simple(device, "event_native", error);
}
bp_status stream_wrap(bp_device* device, const bp_native_handle*, bp_stream** out, bp_error* error) {
  return make(of(device), "stream_wrap", out, error, [] { return new bp_stream{}; });
}
bp_status buffer_wrap(bp_device* device, const bp_native_handle* native, uint32_t* out_kind, bp_buffer** out,
                      bp_error* error) {
  *out_kind = of(device).wrapped_kind;
  return make(of(device), "buffer_wrap", out, error, [&] {
    return new bp_buffer{BP_MEMORY_DEVICE, reinterpret_cast<char*>(native->value), false};
  });
}
bp_status graph_begin(bp_device* device, bp_stream*, const bp_graph_desc*, bp_error* error) {
  return simple(device, "graph_begin", error);
}
bp_status graph_end(bp_device* device, bp_stream*, bp_graph** out, bp_graph_info* info, bp_error* error) {
  info->nodes = of(device).graph_nodes;
  return make(of(device), "graph_end", out, error, [] { return new bp_graph{}; });
}
bp_status graph_launch(bp_device* device, bp_stream*, bp_graph*, const bp_graph_binding*, uint32_t, bp_error* error) {
  return simple(device, "graph_launch", error);
}
void graph_destroy(bp_device* device, bp_graph* graph) { end(device, "graph_destroy", graph); }
bp_status pack_create(bp_device* device, const bp_op_desc*, uint32_t, bp_pack** out, bp_pack_info* info,
                      bp_error* error) {
  info->bytes = of(device).packed_bytes;
  info->layout = 7;
  if (out == nullptr) return simple(device, "pack_create", error);
  return make(of(device), "pack_create", out, error, [] { return new bp_pack{}; });
}
bp_status pack_execute(bp_device* device, bp_stream*, bp_pack*, bp_buffer*, uint64_t, bp_buffer*, uint64_t,
                       bp_error* error) {
  return simple(device, "pack_execute", error);
}
void pack_destroy(bp_device* device, bp_pack* pack) { end(device, "pack_destroy", pack); }
bp_status peer_query(bp_device* device, bp_device*, uint32_t* out, bp_error* error) {
  *out = of(device).peer_uses;
  return simple(device, "peer_query", error);
}
bp_status peer_enable(bp_device* device, bp_device*, bp_error* error) { return simple(device, "peer_enable", error); }
bp_status peer_copy(bp_device* device, bp_stream*, bp_device*, bp_buffer*, uint64_t, bp_device*, bp_buffer*, uint64_t,
                    uint64_t, bp_error* error) {
  return simple(device, "peer_copy", error);
}
bp_status peer_map(bp_device* device, bp_device*, bp_buffer*, uint32_t* out_kind, bp_buffer** out, bp_error* error) {
  *out_kind = of(device).wrapped_kind;
  return make(of(device), "peer_map", out, error, [] { return new bp_buffer{BP_MEMORY_DEVICE, nullptr, false}; });
}
bp_status peer_wait_event(bp_device* device, bp_stream*, bp_device*, bp_event*, bp_error* error) {
  return simple(device, "peer_wait_event", error);
}
bp_status external_type(bp_device* device, uint32_t, bp_external_type* out, bp_error* error) {
  out->flags = BP_EXTERNAL_MEMORY_IMPORT;
  return simple(device, "external_type", error);
}
bp_status buffer_create_external(bp_device* device, const bp_buffer_desc*, const char*, bp_buffer** out,
                                 bp_error* error) {
  return make(of(device), "buffer_create_external", out, error, [] {
    return new bp_buffer{BP_MEMORY_DEVICE, nullptr, false};
  });
}
bp_status buffer_export(bp_device* device, bp_buffer*, const char*, bp_external_handle* out, bp_error* error) {
  *out = of(device).exported;
  return simple(device, "buffer_export", error);
}
bp_status buffer_import(bp_device* device, const bp_external_handle*, uint32_t* out_kind, bp_buffer** out,
                        bp_error* error) {
  *out_kind = of(device).wrapped_kind;
  return make(of(device), "buffer_import", out, error, [] { return new bp_buffer{BP_MEMORY_DEVICE, nullptr, false}; });
}
bp_status semaphore_create(bp_device* device, const char*, uint64_t, bp_semaphore** out, bp_error* error) {
  return make(of(device), "semaphore_create", out, error, [] { return new bp_semaphore{}; });
}
bp_status semaphore_export(bp_device* device, bp_semaphore*, const char*, bp_external_handle* out, bp_error* error) {
  *out = of(device).exported;
  return simple(device, "semaphore_export", error);
}
bp_status semaphore_import(bp_device* device, const bp_external_handle*, bp_semaphore** out, bp_error* error) {
  return make(of(device), "semaphore_import", out, error, [] { return new bp_semaphore{}; });
}
bp_status semaphore_signal(bp_device* device, bp_stream*, bp_semaphore*, uint64_t, bp_error* error) {
  return simple(device, "semaphore_signal", error);
}
bp_status semaphore_wait(bp_device* device, bp_stream*, bp_semaphore*, uint64_t, bp_error* error) {
  return simple(device, "semaphore_wait", error);
}
void semaphore_destroy(bp_device* device, bp_semaphore* semaphore) { end(device, "semaphore_destroy", semaphore); }

}  // namespace

Puppet::Puppet() {
  instance.puppet = this;
  instance.table = {.struct_size = sizeof(bp_plugin),
                    .abi_version = BP_ABI_VERSION,
                    .abi_version_min = BP_ABI_VERSION_OLDEST,
                    .build_flags = 0,
                    .name = "puppet",
                    .version = "1",
                    .device_api = &api,
                    .device_count = device_count,
                    .device_info = device_info,
                    .device_open = device_open,
                    .get_interface = get_interface,
                    .shutdown = shutdown};
  api = {.struct_size = sizeof(bp_device_api),
         .reserved = 0,
         .close = close,
         .memory_info = memory_info,
         .buffer_create = buffer_create,
         .buffer_destroy = buffer_destroy,
         .buffer_map = buffer_map,
         .stream_create = stream_create,
         .stream_destroy = stream_destroy,
         .stream_wait = stream_wait,
         .event_create = event_create,
         .event_destroy = event_destroy,
         .event_record = event_record,
         .stream_wait_event = stream_wait_event,
         .event_wait = event_wait,
         .event_elapsed = event_elapsed,
         .copy = copy,
         .copy_in = copy_in,
         .copy_out = copy_out,
         .plan_create = plan_create,
         .plan_destroy = plan_destroy,
         .plan_execute = plan_execute,
         .plan_workspace = plan_workspace,
         .buffer_address = buffer_address};
  import = {.struct_size = sizeof(bp_import_api), .reserved = 0, .import_memory = import_memory};
  // The device has no handles of its own, so device_native is null.
  native = {.struct_size = sizeof(bp_native_api),
            .reserved = 0,
            .device_native = nullptr,
            .stream_native = stream_native,
            .buffer_native = buffer_native,
            .event_native = event_native,
            .stream_wrap = stream_wrap,
            .buffer_wrap = buffer_wrap};
  graph = {.struct_size = sizeof(bp_graph_api),
           .reserved = 0,
           .graph_begin = graph_begin,
           .graph_end = graph_end,
           .graph_launch = graph_launch,
           .graph_destroy = graph_destroy};
  peer = {.struct_size = sizeof(bp_peer_api),
          .reserved = 0,
          .peer_query = peer_query,
          .peer_enable = peer_enable,
          .peer_copy = peer_copy,
          .peer_map = peer_map,
          .peer_wait_event = peer_wait_event};
  external = {.struct_size = sizeof(bp_external_api),
              .reserved = 0,
              .external_type = external_type,
              .buffer_create_external = buffer_create_external,
              .buffer_export = buffer_export,
              .buffer_import = buffer_import,
              .semaphore_create = semaphore_create,
              .semaphore_export = semaphore_export,
              .semaphore_import = semaphore_import,
              .semaphore_signal = semaphore_signal,
              .semaphore_wait = semaphore_wait,
              .semaphore_destroy = semaphore_destroy};
  pack = {.struct_size = sizeof(bp_pack_api),
          .reserved = 0,
          .pack_create = pack_create,
          .pack_execute = pack_execute,
          .pack_destroy = pack_destroy};
  host = {.struct_size = sizeof(bp_host),
          .abi_version = BP_ABI_VERSION,
          .context = this,
          .log = [](void* context, int32_t, const char* line) { static_cast<Puppet*>(context)->log.push_back(line); },
          .get_interface = [](void*, const char*, uint32_t) -> const void* { return nullptr; }};
}

}  // namespace backplane::core::test
