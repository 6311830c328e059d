// SPDX-License-Identifier: Apache-2.0
// Graphs, their nodes, and executables. A launch of an executable executes the nodes one after another. If several
// nodes may come next, the node that was added last comes first, so that a missing dependency changes the results.
#pragma once

#include "gpu_host/test_driver/modules.hpp"

namespace backplane::gpu_host::test_driver {

// The parameters of a node: the launch of a kernel, or a copy if `kernel` is null.
struct NodeParams {
  const void* kernel = nullptr;
  Grid grid{};
  std::vector<std::byte> arguments;
  void* to = nullptr;
  const void* from = nullptr;
  uint64_t bytes = 0;
};

Result create_graph(void** out);
Result remove_graph(const void* graph);
Result add_node(const Call& call, const void* graph, std::span<const void* const> after, NodeParams params, void** out);
// The executable contains copies of the graph's nodes.
Result instantiate(const void* graph, void** out);
Result remove_executable(const void* executable);
// Returns INVALID_VALUE if the memory of a copy has another kind or device than before.
Result set_node(const Call& call, const void* executable, const void* node, NodeParams params);
Result launch_graph(Call& call, const void* executable, const void* stream);

}  // namespace backplane::gpu_host::test_driver
