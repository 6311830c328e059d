// SPDX-License-Identifier: Apache-2.0
// Captures and launches graphs of bp.graph.
#pragma once

#include <utility>
#include <vector>

#include "harness/context.hpp"

namespace backplane::conformance {

inline constexpr const char* kGraphExtension = "GRAPH";
inline constexpr uint32_t kGraphSince = BP_VERSION(0, 3);

// Returns the slots of bp.graph. Ends the case as not claimed if the device lacks the interface.
bp_graph_api graph_of(Context& context, Device& device);

// Owns a graph. The destructor destroys the graph, unless the case failed.
class Graph {
 public:
  Graph(const bp_graph_api& api, Device& device, bp_graph* handle) : api_(api), device_(&device), handle_(handle) {}
  Graph(Graph&& other) noexcept
      : api_(other.api_), device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}
  Graph& operator=(Graph&&) = delete;
  ~Graph() {
    if (!abandoned()) reset();
  }
  void reset() {
    if (bp_graph* handle = std::exchange(handle_, nullptr)) api_.graph_destroy(device_->get(), handle);
  }
  bp_graph* get() const { return handle_; }

 private:
  bp_graph_api api_;
  Device* device_;
  bp_graph* handle_;
};

using Bindings = std::vector<bp_graph_binding>;

// Calls the slots of bp.graph on the case's device. A failure fails the case, except in functions
// whose names begin with `try`.
class GraphCalls {
 public:
  explicit GraphCalls(Context& context);

  void begin(const Stream& stream, const Bindings& bindings = {}) const;
  bp_status try_begin(const Stream& stream, const bp_graph_desc* desc, ErrorRecord& error) const;
  // Ends a capture, which must contain `nodes` executions and copies.
  Graph end(const Stream& stream, uint64_t nodes) const;
  // Calls graph_end, and requires that the graph is null exactly if the call fails.
  bp_status try_end(const Stream& stream, ErrorRecord& error) const;
  void launch(const Stream& stream, const Graph& graph, const Bindings& bindings = {}) const;
  bp_status try_launch(const Stream& stream, const Graph& graph, const Bindings& bindings, ErrorRecord& error) const;
  const bp_graph_api& api() const { return api_; }

  static bp_graph_desc describe(const Bindings& bindings);
  static bp_graph_binding whole(const Buffer& buffer) { return {buffer.get(), 0, buffer.bytes}; }

 private:
  Context& context_;
  Device& device_;
  bp_graph_api api_;
};

}  // namespace backplane::conformance
