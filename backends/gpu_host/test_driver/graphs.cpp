// SPDX-License-Identifier: Apache-2.0
#include "gpu_host/test_driver/graphs.hpp"

#include <algorithm>
#include <unordered_map>

namespace backplane::gpu_host::test_driver {

namespace {

struct GraphedNode {
  NodeParams params;
  std::vector<std::size_t> after;  // positions in the graph
};
// Handles of nodes are the addresses of the elements of `handles`.
struct LoadedGraph {
  std::vector<GraphedNode> nodes;
  std::deque<char> handles;
};
struct Executable {
  const void* graph;
  std::vector<GraphedNode> nodes;
  uint64_t stream = 0, command = 0;  // the end of the latest launch
};
struct NodeHandle {
  const void* graph;
  std::size_t position;
};

template <class T>
using Objects = std::unordered_map<const void*, std::unique_ptr<T>>;

Objects<LoadedGraph>& graphs() {
  static auto* const all = new Objects<LoadedGraph>;
  return *all;
}
Objects<Executable>& executables() {
  static auto* const all = new Objects<Executable>;
  return *all;
}
std::unordered_map<const void*, NodeHandle>& node_handles() {
  static auto* const all = new std::unordered_map<const void*, NodeHandle>;
  return *all;
}

template <class T>
T* find_object(const Objects<T>& all, const void* handle, const char* rule) {
  const auto found = all.find(handle);
  if (found != all.end()) return found->second.get();
  (void)violate(Result::kInvalidValue, rule);
  return nullptr;
}
LoadedGraph* find_graph(const void* handle) {
  return find_object(graphs(), handle, "a graph is used that was destroyed, or never existed");
}
Executable* find_executable(const void* handle) {
  return find_object(executables(), handle, "an executable graph is used that was destroyed, or never existed");
}

// Returns whether two addresses are in memory of one kind and one device.
bool has_same_memory(const void* address, const void* other) {
  const Allocation *const first = find_allocation(address), *const second = find_allocation(other);
  return first != nullptr && second != nullptr && first->kind == second->kind && first->context == second->context;
}

Result check_params(const Call& call, const NodeParams& params) {
  if (params.kernel != nullptr) return check_launch(call, params.kernel, params.grid, params.arguments);
  if (params.bytes == 0) return violate(Result::kInvalidValue, "a node copies no bytes");
  if (find_allocation(params.to) == nullptr || find_allocation(params.from) == nullptr) {
    return violate(Result::kInvalidValue, "a node copies memory that was not allocated");
  }
  return Result::kSuccess;
}

// Reports a violation if the latest launch may still run, unless the stack permits changes of running graphs.
Result check_unlaunched(const Executable& executable) {
  const bool is_running = executable.stream != 0 && !observed().has(executable.stream, executable.command);
  if (!is_running || traits().changes_running_graphs) return Result::kSuccess;
  return violate(Result::kInvalidValue, "an executable graph is changed or destroyed, and a launch may not have ended");
}

}  // namespace

Result create_graph(void** out) {
  auto made = std::make_unique<LoadedGraph>();
  *out = made.get();
  graphs()[*out] = std::move(made);
  return Result::kSuccess;
}

Result remove_graph(const void* handle) {
  if (find_graph(handle) == nullptr) return Result::kInvalidValue;
  std::erase_if(node_handles(), [&](const auto& each) { return each.second.graph == handle; });
  graphs().erase(handle);
  return Result::kSuccess;
}

Result add_node(const Call& call, const void* handle, std::span<const void* const> after, NodeParams params,
                void** out) {
  LoadedGraph* const graph = find_graph(handle);
  if (graph == nullptr) return Result::kInvalidValue;
  if (const Result result = check_params(call, params); result != Result::kSuccess) return result;
  GraphedNode node{std::move(params), {}};
  for (const void* each : after) {
    const auto found = node_handles().find(each);
    if (found == node_handles().end() || found->second.graph != handle) {
      return violate(Result::kInvalidValue, "a node follows a node of another graph");
    }
    if (std::ranges::find(node.after, found->second.position) != node.after.end()) {
      return violate(Result::kInvalidValue, "a node follows the same node twice");
    }
    node.after.push_back(found->second.position);
  }
  *out = &graph->handles.emplace_back();
  node_handles()[*out] = {handle, graph->nodes.size()};
  graph->nodes.push_back(std::move(node));
  return Result::kSuccess;
}

Result instantiate(const void* handle, void** out) {
  const LoadedGraph* const graph = find_graph(handle);
  if (graph == nullptr) return Result::kInvalidValue;
  auto made = std::make_unique<Executable>(Executable{handle, graph->nodes});
  *out = made.get();
  executables()[*out] = std::move(made);
  return Result::kSuccess;
}

Result remove_executable(const void* handle) {
  const Executable* const executable = find_executable(handle);
  if (executable == nullptr) return Result::kInvalidValue;
  if (const Result result = check_unlaunched(*executable); result != Result::kSuccess) return result;
  executables().erase(handle);
  return Result::kSuccess;
}

Result set_node(const Call& call, const void* handle, const void* node_handle, NodeParams params) {
  Executable* const executable = find_executable(handle);
  if (executable == nullptr) return Result::kInvalidValue;
  const auto found = node_handles().find(node_handle);
  if (found == node_handles().end() || found->second.graph != executable->graph) {
    return violate(Result::kInvalidValue, "the executable graph was not instantiated from the graph of the node");
  }
  if (const Result result = check_unlaunched(*executable); result != Result::kSuccess) return result;
  if (const Result result = check_params(call, params); result != Result::kSuccess) return result;
  NodeParams& old = executable->nodes[found->second.position].params;
  if ((old.kernel == nullptr) != (params.kernel == nullptr)) {
    return violate(Result::kInvalidValue, "a node becomes a node of another type");
  }
  const bool is_copy = params.kernel == nullptr;
  if (is_copy && !(has_same_memory(old.to, params.to) && has_same_memory(old.from, params.from))) {
    return Result::kInvalidValue;
  }
  old = std::move(params);
  return Result::kSuccess;
}

Result launch_graph(Call& call, const void* handle, const void* stream_handle) {
  Executable* const executable = find_executable(handle);
  const auto stream = find_stream(call, stream_handle);
  if (executable == nullptr || stream == nullptr) return Result::kInvalidHandle;
  const std::vector<GraphedNode>& nodes = executable->nodes;
  std::vector<bool> done(nodes.size());
  for (std::size_t count = 0; count < nodes.size(); ++count) {
    std::size_t next = nodes.size() - 1;  // a node follows only nodes that were added before it, so one node is ready
    while (done[next] || std::ranges::any_of(nodes[next].after, [&](std::size_t each) { return !done[each]; })) --next;
    done[next] = true;
    const NodeParams& params = nodes[next].params;
    const Result result = params.kernel != nullptr
                              ? launch(call, params.kernel, stream_handle, params.grid, params.arguments)
                              : copy(call, stream_handle, params.to, params.from, params.bytes);
    if (result != Result::kSuccess) return result;
  }
  executable->stream = stream->number();
  executable->command = stream->commands();
  return Result::kSuccess;
}

}  // namespace backplane::gpu_host::test_driver
