// SPDX-License-Identifier: Apache-2.0
#include "cases/runtime/graph.hpp"

#include <backplane/rules/tables.hpp>
#include <cstring>

namespace backplane::conformance {

bp_graph_api graph_of(Context& context, Device& device) {
  const Plugin& plugin = device.plugin();
  const void* given = plugin->get_interface == nullptr
                          ? nullptr
                          : plugin->get_interface(plugin.get(), device.get(), BP_INTERFACE_GRAPH, 1);
  if (given == nullptr) context.not_claimed("the device has no bp.graph");
  return backplane::rules::known_part(*static_cast<const bp_graph_api*>(given), plugin->abi_version);
}

GraphCalls::GraphCalls(Context& context)
    : context_(context), device_(context.device()), api_(graph_of(context, device_)) {
  context.require(api_.graph_begin != nullptr && api_.graph_end != nullptr && api_.graph_launch != nullptr &&
                      api_.graph_destroy != nullptr,
                  "a slot of bp.graph is null");
}

bp_graph_desc GraphCalls::describe(const Bindings& bindings) {
  return {sizeof(bp_graph_desc), 0, bindings.data(), static_cast<uint32_t>(bindings.size()), 0};
}

void GraphCalls::begin(const Stream& stream, const Bindings& bindings) const {
  const bp_graph_desc desc = describe(bindings);
  ErrorRecord error;
  expect_status(try_begin(stream, &desc, error), error, "graph_begin", {BP_OK});
}

bp_status GraphCalls::try_begin(const Stream& stream, const bp_graph_desc* desc, ErrorRecord& error) const {
  return api_.graph_begin(device_.get(), stream.get(), desc, &error);
}

Graph GraphCalls::end(const Stream& stream, uint64_t nodes) const {
  bp_graph_info info;
  std::memset(&info, 0xA5, sizeof(info));
  info.struct_size = sizeof(info);
  bp_graph* made = nullptr;
  ErrorRecord error;
  expect_status(api_.graph_end(device_.get(), stream.get(), &made, &info, &error), error, "graph_end", {BP_OK});
  context_.require(made != nullptr, "graph_end returned OK and no graph");
  context_.require(info.nodes == nodes, "graph_end stated {} nodes for {} executions and copies", info.nodes, nodes);
  return {api_, device_, made};
}

bp_status GraphCalls::try_end(const Stream& stream, ErrorRecord& error) const {
  bp_graph* made = reinterpret_cast<bp_graph*>(&made);
  const bp_status status = api_.graph_end(device_.get(), stream.get(), &made, nullptr, &error);
  context_.require((status == BP_OK) == (made != nullptr), "graph_end returned {} and gave {}", status_name(status),
                   static_cast<const void*>(made));
  const Graph unused(api_, device_, made);
  return status;
}

void GraphCalls::launch(const Stream& stream, const Graph& graph, const Bindings& bindings) const {
  ErrorRecord error;
  expect_status(try_launch(stream, graph, bindings, error), error, "graph_launch", {BP_OK});
}

bp_status GraphCalls::try_launch(const Stream& stream, const Graph& graph, const Bindings& bindings,
                                 ErrorRecord& error) const {
  return api_.graph_launch(device_.get(), stream.get(), graph.get(), bindings.data(),
                           static_cast<uint32_t>(bindings.size()), &error);
}

}  // namespace backplane::conformance
