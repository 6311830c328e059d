// SPDX-License-Identifier: Apache-2.0
// The C table of the interface "bp.graph", implemented by a C++ device class. The class has the
// type Graph and these methods, or none of them:
//   Status begin_graph(Stream&, std::span<const bp_graph_binding>);
//       The kit has already rejected bindings without a buffer, empty bindings, and bindings that
//       overlap. The method must reject a binding that exceeds its buffer.
//   Result<Graph*> end_graph(Stream&, bp_graph_info&);
//       Ends the capture, even if the call fails.
//   Status launch(Stream&, Graph&, std::span<const bp_graph_binding>);
//       The kit has already rejected a wrong number of bindings, bindings without a buffer, and
//       empty bindings.
//   std::size_t binding_count(const Graph&);
//   void destroy(Graph*);
#pragma once

#include <backplane/kit/slot.hpp>
#include <span>
#include <vector>

namespace backplane::kit {

template <class Device>
concept HasGraphs = requires(Device& d, typename Device::Stream& s, typename Device::Graph& g, bp_graph_info& info,
                             std::span<const bp_graph_binding> bindings) {
  d.begin_graph(s, bindings);
  d.end_graph(s, info);
  d.launch(s, g, bindings);
  d.binding_count(g);
  d.destroy(&g);
};

template <class Device>
class GraphTable : DeviceSlots<Device> {
  using Slots = DeviceSlots<Device>;
  using Slots::of;
  using Slots::slot;
  using Graph = typename Device::Graph;

  static Graph& of(bp_graph* graph) { return *reinterpret_cast<Graph*>(graph); }

  // Checks that each binding has a buffer and at least 1 byte.
  static Status check(const char* name, std::span<const bp_graph_binding> bindings) {
    for (std::size_t i = 0; i < bindings.size(); ++i) {
      if (bindings[i].buffer != nullptr && bindings[i].bytes != 0) continue;
      return invalid_argument(name, ": binding ", i, " has no buffer or 0 bytes; pass a range of at least 1 byte");
    }
    return {};
  }
  static Status check_distinct(std::span<const bp_graph_binding> bindings) {
    std::vector<const bp_graph_binding*> order;
    for (const bp_graph_binding& binding : bindings) order.push_back(&binding);
    std::sort(order.begin(), order.end(), [](const bp_graph_binding* a, const bp_graph_binding* b) {
      return a->buffer != b->buffer ? std::less<>{}(a->buffer, b->buffer) : a->offset < b->offset;
    });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const bp_graph_binding &first = *order[i - 1], &second = *order[i];
      if (first.buffer != second.buffer || second.offset - first.offset >= first.bytes) continue;
      return invalid_argument("graph_begin: two bindings overlap at byte ", second.offset,
                              " of a buffer; pass ranges apart");
    }
    return {};
  }

  static bp_status graph_begin(bp_device* device, bp_stream* stream, const bp_graph_desc* desc, bp_error* error) {
    return slot(
        error, "graph_begin",
        [&] {
          bp_graph_desc known;
          Status status = read_input(desc, BP_GRAPH_DESC_MIN_SIZE, "bp_graph_desc", known);
          if (!status.ok()) return status;
          if (known.flags != 0 || known.reserved != 0) {
            return unsupported("bp_graph_desc.flags is ", known.flags, " and reserved ", known.reserved,
                               ", known is 0");
          }
          if (known.bindings == nullptr && known.binding_count != 0) {
            return invalid_argument("graph_begin: the bindings are null");
          }
          const std::span bindings(known.bindings, known.binding_count);
          status = check("graph_begin", bindings);
          if (status.ok()) status = check_distinct(bindings);
          return status.ok() ? of(device).begin_graph(of(stream), bindings) : status;
        },
        device, stream);
  }

  static bp_status graph_end(bp_device* device, bp_stream* stream, bp_graph** out, bp_graph_info* info,
                             bp_error* error) {
    return fence_out(device, out, error, [&]() -> Result<Graph*> {
      if (stream == nullptr) return invalid_argument("graph_end: a handle is null");
      if (info != nullptr) {
        Status status = check_output(info, BP_GRAPH_INFO_MIN_SIZE, "bp_graph_info");
        if (!status.ok()) return status;
      }
      bp_graph_info facts{};
      Result<Graph*> made = of(device).end_graph(of(stream), facts);
      if (made.ok() && info != nullptr) write_output(info, facts);
      return made;
    });
  }

  static bp_status graph_launch(bp_device* device, bp_stream* stream, bp_graph* graph, const bp_graph_binding* bindings,
                                uint32_t count, bp_error* error) {
    return slot(
        error, "graph_launch",
        [&] {
          const std::size_t recorded = of(device).binding_count(of(graph));
          if (count != 0 && (count != recorded || bindings == nullptr)) {
            return invalid_argument("graph_launch: ", count, " bindings are given, ", recorded,
                                    " were captured; pass 0 or one for each");
          }
          const std::span given(bindings, count);
          Status status = check("graph_launch", given);
          return status.ok() ? of(device).launch(of(stream), of(graph), given) : status;
        },
        device, stream, graph);
  }

  static void graph_destroy(bp_device* device, bp_graph* graph) {
    if (graph != nullptr) of(device).destroy(&of(graph));
  }

  static constexpr bp_graph_api make() {
    bp_graph_api api{};
    api.struct_size = sizeof(bp_graph_api);
    api.graph_begin = graph_begin;
    api.graph_end = graph_end;
    api.graph_launch = graph_launch;
    api.graph_destroy = graph_destroy;
    return api;
  }

 public:
  static constexpr bp_graph_api table = make();
};

}  // namespace backplane::kit
