// SPDX-License-Identifier: Apache-2.0
// Implements the C functions for graphs.
#include <backplane/backplane.h>

#include "api/boundary.hpp"
#include "base/structs.hpp"
#include "graph/recorder.hpp"

using namespace backplane::core;

bp_status bph_graph_begin(bph_stream* stream, const bph_graph_desc* desc, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_graph_begin";
    Stream& target = require<Stream>(stream, function);
    bph_graph_desc known = {};
    if (desc != nullptr) known = read_input(desc, BPH_GRAPH_DESC_MIN_SIZE, function, "bph_graph_desc");
    const StreamLock lock(target, function);
    Recorder::begin(target, known);
  });
}

bp_status bph_graph_end(bph_stream* stream, bph_graph** out, bph_graph_info* info, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_graph_end";
    if (out != nullptr) *out = nullptr;
    Stream& target = require<Stream>(stream, function);
    const StreamLock lock(target, function, StreamLock::Purpose::record);
    // Any later failure discards the recording.
    Ref<Graph> graph = Recorder::end(target);
    start_output(out, function);
    if (info != nullptr) {
      check_struct_size(info->struct_size, BPH_GRAPH_INFO_MIN_SIZE, function, "bph_graph_info");
    }
    if (info != nullptr) write_output(info, graph->info(), function, "bph_graph_info", BPH_GRAPH_INFO_MIN_SIZE);
    hand_out(std::move(graph), out);
  });
}

bp_status bph_graph_launch(bph_stream* stream, bph_graph* graph, const bph_graph_binding* bindings, uint32_t count,
                           bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_graph_launch";
    Stream& target = require<Stream>(stream, function);
    require<Graph>(graph, function).launch(target, bindings, count);
  });
}

void bph_graph_release(bph_graph* graph) { end_handle<Graph>(graph); }
