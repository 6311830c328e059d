// SPDX-License-Identifier: Apache-2.0
// The C table of a device's slots, implemented by a C++ device class. The class must have the types
// Buffer, Stream, Event and Plan, and the methods of HostDevice (host_device.hpp). The methods
// copy_in, copy_out, address, workspace, import_memory and the methods of graph_table.hpp,
// native_table.hpp, peer_table.hpp, external_table.hpp and pack_table.hpp are optional.
#pragma once

#include <backplane/kit/external_table.hpp>
#include <backplane/kit/graph_table.hpp>
#include <backplane/kit/native_table.hpp>
#include <backplane/kit/pack_table.hpp>
#include <backplane/kit/peer_table.hpp>

namespace backplane::kit {

template <class Device>
class DeviceTable : DeviceSlots<Device> {
  using Slots = DeviceSlots<Device>;
  using Slots::of;
  using Slots::slot;
  using typename Slots::Buffer;
  using typename Slots::Event;
  using typename Slots::Plan;
  using typename Slots::Stream;

  static void close(bp_device* device) { delete &of(device); }

  static bp_status memory_info(bp_device* device, uint32_t kind, bp_memory_info* out, bp_error* error) {
    return slot(
        error, "memory_info",
        [&] {
          Status status = check_output(out, BP_MEMORY_INFO_MIN_SIZE, "bp_memory_info");
          bp_memory_info info{};
          if (status.ok()) status = of(device).memory_info(kind, info);
          if (status.ok()) write_output(out, info);
          return status;
        },
        device);
  }

  static bp_status buffer_create(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error) {
    return fence_out(device, out, error, [&]() -> Result<Buffer*> {
      bp_buffer_desc known;
      Status status = read_input(desc, BP_BUFFER_DESC_MIN_SIZE, "bp_buffer_desc", known);
      if (!status.ok()) return status;
      return of(device).create_buffer(known);
    });
  }
  static void buffer_destroy(bp_device* device, bp_buffer* buffer) {
    if (buffer != nullptr) of(device).destroy(&of(buffer));
  }
  static bp_status buffer_map(bp_device* device, bp_buffer* buffer, void** out, bp_error* error) {
    if (out == nullptr) return report(error, BP_INVALID_ARGUMENT, "buffer_map: the pointer for the result is null");
    *out = nullptr;
    return slot(
        error, "buffer_map",
        [&] {
          auto result = of(device).map(of(buffer));
          if (result.ok()) *out = result.value();
          return result.status();
        },
        device, buffer);
  }

  static bp_status stream_create(bp_device* device, const bp_stream_desc* desc, bp_stream** out, bp_error* error) {
    return fence_out(device, out, error, [&]() -> Result<Stream*> {
      bp_stream_desc known;
      Status status = read_input(desc, BP_STREAM_DESC_MIN_SIZE, "bp_stream_desc", known);
      if (!status.ok()) return status;
      return of(device).create_stream(known);
    });
  }
  static void stream_destroy(bp_device* device, bp_stream* stream) {
    if (stream != nullptr) of(device).destroy(&of(stream));
  }
  static bp_status stream_wait(bp_device* device, bp_stream* stream, uint64_t timeout_ns, bp_error* error) {
    return slot(
        error, "stream_wait", [&] { return of(device).wait(of(stream), timeout_ns); }, device, stream);
  }

  static bp_status event_create(bp_device* device, uint32_t flags, bp_event** out, bp_error* error) {
    return fence_out(device, out, error, [&] { return of(device).create_event(flags); });
  }
  static void event_destroy(bp_device* device, bp_event* event) {
    if (event != nullptr) of(device).destroy(&of(event));
  }
  static bp_status event_record(bp_device* device, bp_event* event, bp_stream* stream, bp_error* error) {
    return slot(
        error, "event_record", [&] { return of(device).record(of(event), of(stream)); }, device, event, stream);
  }
  static bp_status stream_wait_event(bp_device* device, bp_stream* stream, bp_event* event, bp_error* error) {
    return slot(
        error, "stream_wait_event", [&] { return of(device).wait_event(of(stream), of(event)); }, device, stream,
        event);
  }
  static bp_status event_wait(bp_device* device, bp_event* event, uint64_t timeout_ns, bp_error* error) {
    return slot(
        error, "event_wait", [&] { return of(device).wait(of(event), timeout_ns); }, device, event);
  }
  static bp_status event_elapsed(bp_device* device, bp_event* begin, bp_event* end, int64_t* out_ns, bp_error* error) {
    return slot(
        error, "event_elapsed",
        [&] {
          auto result = of(device).elapsed(of(begin), of(end));
          if (result.ok()) *out_ns = result.value();
          return result.status();
        },
        device, begin, end, out_ns);
  }

  static bp_status copy(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, bp_buffer* src,
                        uint64_t src_offset, uint64_t bytes, bp_error* error) {
    return slot(
        error, "copy", [&] { return of(device).copy(of(stream), of(dst), dst_offset, of(src), src_offset, bytes); },
        device, stream, dst, src);
  }
  static bp_status copy_in(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, const void* src,
                           uint64_t bytes, bp_error* error) {
    return slot(
        error, "copy_in", [&] { return of(device).copy_in(of(stream), of(dst), dst_offset, src, bytes); }, device,
        stream, dst);
  }
  static bp_status copy_out(bp_device* device, bp_stream* stream, void* dst, bp_buffer* src, uint64_t src_offset,
                            uint64_t bytes, bp_error* error) {
    return slot(
        error, "copy_out", [&] { return of(device).copy_out(of(stream), dst, of(src), src_offset, bytes); }, device,
        stream, src);
  }

  static bp_status plan_create(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                               bp_error* error) {
    if (out != nullptr) *out = nullptr;
    return slot(
        error, "plan_create",
        [&] {
          Status status = check_output(info, BP_PLAN_INFO_MIN_SIZE, "bp_plan_info");
          bp_plan_info facts{};
          if (status.ok()) status = of(device).create_plan(desc, reinterpret_cast<Plan**>(out), facts);
          if (status.ok()) write_output(info, facts);
          return status;
        },
        device);
  }
  static void plan_destroy(bp_device* device, bp_plan* plan) {
    if (plan != nullptr) of(device).destroy(&of(plan));
  }
  static bp_status plan_execute(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                                bp_error* error) {
    return slot(
        error, "plan_execute", [&] { return of(device).execute(of(stream), of(plan), execution); }, device, stream,
        plan);
  }

  static bp_status plan_workspace(bp_device* device, bp_plan* plan, const bp_op_desc* desc, uint64_t* out_bytes,
                                  bp_error* error) {
    return slot(
        error, "plan_workspace",
        [&] {
          auto result = of(device).workspace(of(plan), desc);
          if (result.ok()) *out_bytes = result.value();
          return result.status();
        },
        device, plan, desc, out_bytes);
  }

  static bp_status buffer_address(bp_device* device, bp_buffer* buffer, uint64_t* out, bp_error* error) {
    if (out == nullptr) return report(error, BP_INVALID_ARGUMENT, "buffer_address: the pointer for the result is null");
    *out = 0;
    return slot(
        error, "buffer_address",
        [&] {
          auto result = of(device).address(of(buffer));
          if (result.ok()) *out = result.value();
          return result.status();
        },
        device, buffer);
  }

  static constexpr bool kAddressed = requires(const Device& d, const Buffer& b) { d.address(b); };
  static constexpr bool kPageable = requires(Device& d, Stream& s, Buffer& b, void* p) {
    d.copy_in(s, b, 0, p, 0);
    d.copy_out(s, p, b, 0, 0);
  };

  static constexpr bool kSized =
      requires(const Device& d, const Plan& p, const bp_op_desc* desc) { d.workspace(p, desc); };

  static constexpr bp_device_api make() {
    bp_device_api api{};
    api.struct_size = sizeof(bp_device_api);
    api.close = close;
    api.memory_info = memory_info;
    api.buffer_create = buffer_create;
    api.buffer_destroy = buffer_destroy;
    api.buffer_map = buffer_map;
    api.stream_create = stream_create;
    api.stream_destroy = stream_destroy;
    api.stream_wait = stream_wait;
    api.event_create = event_create;
    api.event_destroy = event_destroy;
    api.event_record = event_record;
    api.stream_wait_event = stream_wait_event;
    api.event_wait = event_wait;
    api.event_elapsed = event_elapsed;
    api.copy = copy;
    if constexpr (kPageable) {
      api.copy_in = copy_in;
      api.copy_out = copy_out;
    }
    api.plan_create = plan_create;
    api.plan_destroy = plan_destroy;
    api.plan_execute = plan_execute;
    if constexpr (kSized) api.plan_workspace = plan_workspace;
    if constexpr (kAddressed) api.buffer_address = buffer_address;
    return api;
  }

  static constexpr bp_import_api make_import() {
    bp_import_api api{};
    api.struct_size = sizeof(bp_import_api);
    api.import_memory = import_memory;
    return api;
  }
  static constexpr bp_import_api kImportTable = make_import();

  // The slot of the interface "bp.import", for devices that have import_memory.
  static bp_status import_memory(bp_device* device, const bp_import_desc* desc, uint32_t* out_kind, bp_buffer** out,
                                 bp_error* error) {
    return fence_out(device, out, error, [&]() -> Result<Buffer*> {
      bp_import_desc known;
      Status status = read_input(desc, BP_IMPORT_DESC_MIN_SIZE, "bp_import_desc", known);
      if (!status.ok()) return status;
      if (known.address == 0 || known.bytes == 0) return invalid_argument("import_memory: no memory given");
      uint32_t kind = 0;
      auto result = of(device).import_memory(known, kind);
      if (result.ok() && out_kind != nullptr) *out_kind = kind;
      return result;
    });
  }

 public:
  static constexpr bp_device_api table = make();

  // Returns the device's interface `name`, or null. If only some devices of a class can import
  // memory or capture graphs, the class also defines imports() or graphs(). A device without external
  // types has no "bp.external".
  static const void* interface(bp_device* device, const char* name, uint32_t version) {
    if constexpr (requires(Device& d, const bp_import_desc& desc, uint32_t& kind) { d.import_memory(desc, kind); }) {
      bool imports = true;
      if constexpr (requires(const Device& d) { d.imports(); }) imports = of(device).imports();
      if (imports && std::string_view(name) == BP_INTERFACE_IMPORT && version == 1) return &kImportTable;
    }
    if constexpr (HasGraphs<Device>) {
      bool graphs = true;
      if constexpr (requires(const Device& d) { d.graphs(); }) graphs = of(device).graphs();
      if (graphs && std::string_view(name) == BP_INTERFACE_GRAPH && version == 1) return &GraphTable<Device>::table;
    }
    if constexpr (NativeTable<Device>::kAny) {
      if (std::string_view(name) == BP_INTERFACE_NATIVE && version == 1) return &NativeTable<Device>::table;
    }
    if constexpr (kHasPeers<Device>) {
      if (std::string_view(name) == BP_INTERFACE_PEER && version == 1) return &PeerTable<Device>::table;
    }
    if constexpr (kHasExternal<Device>) {
      const bool external = std::string_view(name) == BP_INTERFACE_EXTERNAL && version == 1;
      if (external && !of(device).external_types().empty()) return &ExternalTable<Device>::table;
    }
    if constexpr (HasPacks<Device>) {
      if (of(device).packs() && std::string_view(name) == BP_INTERFACE_PACK && version == 1) {
        return &PackTable<Device>::table;
      }
    }
    return nullptr;
  }
};

}  // namespace backplane::kit
