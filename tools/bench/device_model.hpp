// SPDX-License-Identifier: Apache-2.0
// A model on a Backplane device. It runs as a sequence of eager operator calls on one stream, or as a graph.
#pragma once

#include "bench/model_graph.hpp"
#include "bench/sampling.hpp"
#include "host.hpp"

namespace tool {

class DeviceModel final : public Contestant {
 public:
  // `data` comes from graph.make_data(). The model keeps no reference to `graph` or `data`.
  DeviceModel(const Device& device, const ModelGraph& graph, const std::vector<HostBlock>& data);

  // Replaces the nodes by the nodes of `graph`, whose list of values must equal the list of the
  // constructor's graph. An example is the graph of a decode step with another cache length.
  void use_nodes(const ModelGraph& graph);
  // Packs each weight operand of the current nodes for which the plugin prefers another layout than the plain one.
  // Returns the number of packed operands.
  size_t pack_weights();
  // Records the model as a graph, which later runs launch. Returns true if the plugin launches the graph, and false if
  // core enqueues the recorded calls one by one.
  bool record();
  double time(uint32_t calls, bool wait_each) override;
  // Returns the values whose role is output, in order.
  std::vector<HostBlock> outputs() const;

 private:
  struct Step {
    explicit Step(const Node& node) : attributes(node.attributes) {}
    AttributeBlock attributes;
    std::vector<bph_tensor> inputs, outputs;
    std::vector<uint32_t> weights;  // indices of the inputs that view all elements of a weight
    bph_call call;
  };
  // Returns the tensor of a view. A view that is a number becomes a scalar that is broadcast to the extents `output`.
  backplane::Tensor view_of(const View& view, const Extents& output) const;

  Stream stream_;
  std::vector<Value> values_;
  std::vector<backplane::Tensor> tensors_;  // one tensor per value
  std::vector<Step> steps_;
  std::vector<Buffer> packed_;
  std::optional<Graph> graph_;
};

}  // namespace tool
