// SPDX-License-Identifier: Apache-2.0
// Implements the slots of the layer `validation` for bp.graph.
#include "layers/validation/graph.hpp"

#include <algorithm>
#include <tuple>

#include "layers/validation/call.hpp"
#include "layers/validation/memory.hpp"

namespace backplane::core::layers {

namespace {

bp_graph_api graph_table(const Call& call) { return call.device().owner.inner_interface<bp_graph_api>(call.inner()); }

// Returns the plugin's slot. Throws UNSUPPORTED if the device lacks the slot.
template <class Function>
Function graph_slot(const Call& call, Slot slot, Function bp_graph_api::*member) {
  const Function function = graph_table(call).*member;
  if (function == nullptr) throw Error(BP_UNSUPPORTED, "{}: the device has no {}", call.device().name, slot_name(slot));
  return function;
}

// Checks bindings, and returns their buffers. The caller holds the device's mutex.
std::vector<CheckedBuffer*> check_bindings(const Call& call, const bp_graph_binding* bindings, uint32_t count) {
  std::vector<CheckedBuffer*> buffers;
  std::vector<std::tuple<const bp_buffer*, uint64_t, uint64_t, uint32_t>> ranges;
  if (count != 0) call.need(bindings, "bindings");
  for (uint32_t i = 0; i < count; ++i) {
    const bp_graph_binding& binding = bindings[i];
    CheckedBuffer& buffer = call.object(binding.buffer, "binding");
    if (binding.bytes == 0 || binding.offset > buffer.bytes || binding.bytes > buffer.bytes - binding.offset) {
      call.refuse(rule::kGraphBindings,
                  "binding {} has {} bytes at offset {} of a buffer of {} bytes; pass at least 1 byte inside it", i,
                  binding.bytes, binding.offset, buffer.bytes);
    }
    buffers.push_back(&buffer);
    ranges.emplace_back(binding.buffer, binding.offset, binding.offset + binding.bytes, i);
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    const auto& [buffer, begin, end, index] = ranges[i - 1];
    if (buffer == std::get<0>(ranges[i]) && std::get<1>(ranges[i]) < end) {
      call.refuse(rule::kGraphBindings, "bindings {} and {} overlap; pass ranges that share no byte", index,
                  std::get<3>(ranges[i]));
    }
  }
  return buffers;
}

bp_status graph_begin(bp_device* handle, bp_stream* stream, const bp_graph_desc* desc, bp_error* error) {
  return checked(handle, Slot::graph_begin, error, [&](Call& call) {
    const bp_graph_desc known = call.input(desc, BP_GRAPH_DESC_MIN_SIZE, "bp_graph_desc");
    if (known.flags != 0 || known.reserved != 0) {
      call.refuse(rule::kUnknownValue, "flags {:#x} or reserved {:#x} has unknown bits; use 0", known.flags,
                  known.reserved);
    }
    auto graph = std::make_shared<CheckedGraph>();
    CheckedStream* line = nullptr;
    {
      const std::lock_guard lock(call.device().mutex);
      line = &call.occupy_stream(stream);
      if (line->captures()) {
        call.refuse(rule::kCaptureCall, "stream {} captures already; end that capture first", fmt::ptr(stream));
      }
      for (const CheckedBuffer* buffer : check_bindings(call, known.bindings, known.binding_count)) {
        graph->bindings.push_back({known.bindings[graph->bindings.size()].bytes, buffer->kind});
      }
    }
    const auto function = graph_slot(call, Slot::graph_begin, &bp_graph_api::graph_begin);
    Outcome outcome = call.forward(Slot::graph_begin, [&](const bp_device_api&, bp_device* inner, bp_error* record) {
      return function(inner, stream, desc, record);
    });
    const std::lock_guard lock(call.device().mutex);
    call.note(outcome, line);
    if (outcome.ok()) {
      line->graph = std::move(graph);
      line->began = true;
    }
    return outcome.write(error);
  });
}

bp_status graph_end(bp_device* handle, bp_stream* stream, bp_graph** out, bp_graph_info* info, bp_error* error) {
  if (out != nullptr) *out = nullptr;
  return checked(handle, Slot::graph_end, error, [&](Call& call) {
    call.need(out, "out");
    if (info != nullptr) call.output(info, BP_GRAPH_INFO_MIN_SIZE, "bp_graph_info");
    CheckedStream* line = nullptr;
    {
      const std::lock_guard lock(call.device().mutex);
      line = &call.occupy_stream(stream);
      if (!line->captures() || !line->began) {
        call.refuse(rule::kCaptureEnd, "no capture began on stream {}; call graph_begin on it first", fmt::ptr(stream));
      }
    }
    const auto function = graph_slot(call, Slot::graph_end, &bp_graph_api::graph_end);
    bp_graph_info facts = {};
    facts.struct_size = sizeof(facts);
    bp_graph* made = nullptr;
    Outcome outcome = create(call, Slot::graph_end, &made,
                             [&](const bp_device_api&, bp_device* inner, bp_graph** created, bp_error* record) {
                               return function(inner, stream, created, &facts, record);
                             });
    std::shared_ptr<CheckedGraph> graph;
    {
      const std::lock_guard lock(call.device().mutex);
      graph = std::exchange(line->graph, nullptr);
      line->began = false;
      graph->capturing = false;
      if (outcome.ok() && facts.nodes != graph->nodes) {
        call.blame(outcome, rule::kGraphNodes,
                   "gave a graph of {} nodes for {} executions and copies; report it to the plugin's author",
                   facts.nodes, graph->nodes);
      }
      call.note(outcome, line);
    }
    *out = keep(call, outcome, made, graph);
    if (*out == nullptr) {
      const std::lock_guard lock(call.device().mutex);
      graph->forget();
    } else if (info != nullptr) {
      write_output(info, facts, "graph_end", "bp_graph_info", BP_GRAPH_INFO_MIN_SIZE);
    }
    return outcome.write(error);
  });
}

bp_status graph_launch(bp_device* handle, bp_stream* stream, bp_graph* graph, const bp_graph_binding* bindings,
                       uint32_t count, bp_error* error) {
  return checked(handle, Slot::graph_launch, error, [&](Call& call) {
    CheckedStream* line = nullptr;
    std::vector<CheckedBuffer*> buffers;
    {
      const std::lock_guard lock(call.device().mutex);
      CheckedGraph& state = *call.object(graph, "graph");
      line = &call.occupy_stream(stream);
      if (line->captures()) {
        call.refuse(rule::kCaptureCall, "stream {} captures a graph; end that capture first", fmt::ptr(stream));
      }
      if (state.calls != 0) {
        call.refuse(rule::kGraphLaunch, "another launch of graph {} is running; make one launch at a time",
                    fmt::ptr(graph));
      }
      if (count != 0 && count != state.bindings.size()) {
        call.refuse(rule::kGraphLaunch, "{} bindings are given and {} were captured; pass 0 or one for each", count,
                    state.bindings.size());
      }
      buffers = check_bindings(call, bindings, count);
      for (uint32_t i = 0; i < count; ++i) {
        if (bindings[i].bytes != state.bindings[i].bytes || buffers[i]->kind != state.bindings[i].kind) {
          call.refuse(
              rule::kGraphLaunch,
              "binding {} has {} bytes of kind {}, but {} of kind {} were captured; pass a range of this size and kind",
              i, bindings[i].bytes, buffers[i]->kind, state.bindings[i].bytes, state.bindings[i].kind);
        }
      }
      buffers.insert(buffers.end(), state.buffers.begin(), state.buffers.end());
      call.occupy(state.calls);
      occupy_buffers(call, buffers);
    }
    const auto function = graph_slot(call, Slot::graph_launch, &bp_graph_api::graph_launch);
    Outcome outcome = call.forward(Slot::graph_launch, [&](const bp_device_api&, bp_device* inner, bp_error* record) {
      return function(inner, stream, graph, bindings, count, record);
    });
    const std::lock_guard lock(call.device().mutex);
    call.note(outcome, line);
    if (outcome.ok()) use_buffers(call, *line, buffers);
    return outcome.write(error);
  });
}

void graph_destroy(bp_device* handle, bp_graph* graph) {
  checked_void(handle, "graph_destroy", [&](Call& call) {
    {
      const std::lock_guard lock(call.device().mutex);
      CheckedGraph& state = *call.object(graph, "graph");
      if (state.calls != 0) {
        call.refuse(rule::kCallRunning, "another call on graph {} runs; wait for it, then destroy", fmt::ptr(graph));
      }
      state.forget();
      call.device().graphs.end(graph);
    }
    graph_table(call).graph_destroy(call.inner(), graph);
  });
}

}  // namespace

void splice_graph(CheckedPlugin& plugin) {
  bp_graph_api& graph = plugin.graph;
  graph.graph_begin = graph_begin;
  graph.graph_end = graph_end;
  graph.graph_launch = graph_launch;
  graph.graph_destroy = graph_destroy;
}

}  // namespace backplane::core::layers
