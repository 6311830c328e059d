// SPDX-License-Identifier: Apache-2.0
// Fixture that records graphs through the host API, with and without the plugin's bp.graph.
#pragma once

#include "host.hpp"

namespace backplane::core::test {

inline constexpr uint64_t kGraphBytes = 4 * sizeof(float);

// A host with three vectors of 4 floats: two inputs and an output of 0.
struct GraphHost : Host {
  explicit GraphHost(uint32_t graph_flags = 0, const char* path = REFERENCE_PLUGIN) : Host(path), flags(graph_flags) {}

  bph_graph_binding whole(const bph_tensor& view) { return {view.buffer, 0, kGraphBytes}; }
  void begin(const std::vector<bph_graph_binding>& bindings = {}) {
    const bph_graph_desc desc = describe(bindings);
    EXPECT_OK(bph_graph_begin(stream, &desc, &error));
  }
  bph_graph_desc describe(const std::vector<bph_graph_binding>& bindings) const {
    bph_graph_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.flags = flags;
    desc.bindings = bindings.data();
    desc.binding_count = static_cast<uint32_t>(bindings.size());
    return desc;
  }
  bph_graph_info end() {
    bph_graph_info info = {};
    info.struct_size = sizeof(info);
    EXPECT_OK(bph_graph_end(stream, graph.out(), &info, &error));
    return info;
  }
  void execute(const Call& call) { EXPECT_OK(bph_execute(stream, &call, &error)); }
  void launch(const std::vector<bph_graph_binding>& bindings = {}) {
    EXPECT_OK(bph_graph_launch(stream, graph, bindings.data(), static_cast<uint32_t>(bindings.size()), &error));
  }
  void write(const bph_tensor& view, const std::vector<float>& values) {
    EXPECT_OK(bph_copy_in(stream, view.buffer, 0, values.data(), values.size() * sizeof(float), 0, &error));
    EXPECT_OK(bph_stream_wait(stream, BP_WAIT_FOREVER, &error));
  }
  std::vector<float> values(const bph_tensor& view) { return read<float>(view, 4); }

  uint32_t flags;
  bph_tensor a = tensor<float>(BP_F32, {4}, {1, 2, 3, 4});
  bph_tensor b = tensor<float>(BP_F32, {4}, {10, 20, 30, 40});
  bph_tensor c = tensor<float>(BP_F32, {4}, {0, 0, 0, 0});
  Owned<bph_graph> graph;
};

}  // namespace backplane::core::test
