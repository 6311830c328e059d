// SPDX-License-Identifier: Apache-2.0
// The plugin's own graph (bp.graph) of a recording.
#pragma once

#include <backplane/plugin.h>

#include <memory>
#include <vector>

#include "graph/range.hpp"
#include "streams/stream.hpp"

namespace backplane::core {

class Graph;

class NativeGraph {
 public:
  // Captures the recorded calls of `graph` on new plugin streams. Returns null if the plugin has no
  // bp.graph or cannot record the calls. Throws the error of any other failure.
  static std::unique_ptr<NativeGraph> capture(const Graph& graph);
  ~NativeGraph();
  NativeGraph(const NativeGraph&) = delete;
  NativeGraph& operator=(const NativeGraph&) = delete;

  // Enqueues the graph. `ranges` replace the recorded ranges, unless `ranges` is null.
  void launch(Stream& stream, const std::vector<Range>* ranges);
  uint64_t device_bytes() const noexcept { return device_bytes_; }

 private:
  NativeGraph(const Device& device, const bp_graph_api& api) noexcept : device_(device), api_(api) {}

  const Device& device_;  // the graph keeps the device open
  const bp_graph_api api_;
  bp_graph* handle_ = nullptr;
  uint64_t device_bytes_ = 0;
  std::vector<bp_graph_binding> bindings_;  // scratch memory of launch
};

}  // namespace backplane::core
