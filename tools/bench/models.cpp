// SPDX-License-Identifier: Apache-2.0
#include "bench/models.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace tool {
namespace {

View whole(size_t value) { return {.value = value}; }

// Adds layers to a graph. Each function returns the index of its result in the graph's values.
class Builder {
 public:
  Builder(ModelGraph& graph, int64_t rows, int64_t width) : graph_(graph), rows_(rows), width_(width) {}

  size_t temporary(const Extents& shape) { return graph_.add_value({.role = Role::temporary, .shape = shape}); }

  size_t linear(size_t x, int64_t inputs, int64_t outputs, const char* activation = "activation=0") {
    const double spread = 1 / std::sqrt(static_cast<double>(inputs));
    const size_t weight = graph_.add_value({Role::weight, {outputs, inputs}, spread});
    const size_t bias = graph_.add_value({Role::weight, {outputs}, spread});
    const size_t y = temporary({rows_, outputs});
    graph_.add_node("linear", {whole(x), whole(weight), whole(bias)}, {whole(y)}, {activation});
    graph_.count_flops(2.0 * static_cast<double>(rows_ * inputs * outputs));
    return y;
  }
  size_t layer_norm(size_t x, Role role = Role::temporary) {
    const size_t gain = graph_.add_value({Role::weight, {width_}, 0.1, 1});
    const size_t bias = graph_.add_value({Role::weight, {width_}, 0.1});
    const size_t y = graph_.add_value({.role = role, .shape = {rows_, width_}});
    graph_.add_node("layer_norm", {whole(x), whole(gain), whole(bias)}, {whole(y)}, {"axes=2", "epsilon=1e-5"});
    return y;
  }
  size_t add(size_t a, size_t b) {
    const size_t sum = temporary(graph_.values()[a].shape);
    graph_.add_node("add", {whole(a), whole(b)}, {whole(sum)});
    return sum;
  }
  // Returns a view [1, heads, rows, width / heads] of a value [rows, width].
  View heads(size_t value, int64_t count) const {
    return {.value = value,
            .reshape = {1, rows_, count, width_ / count},
            .slice = {},
            .permute = {0, 2, 1, 3},
            .number = {}};
  }
  size_t attention(size_t q, const View& k, const View& v, int64_t count, int64_t keys) {
    const size_t y = temporary({rows_, width_});
    const double scale = 1 / std::sqrt(static_cast<double>(width_) / static_cast<double>(count));
    graph_.add_node("attention", {heads(q, count), k, v}, {heads(y, count)}, {fmt::format("scale={}", scale)});
    graph_.count_flops(4.0 * static_cast<double>(rows_ * keys * width_));
    return y;
  }

 private:
  ModelGraph& graph_;
  int64_t rows_, width_;
};

}  // namespace

ModelGraph bert_layer(ModelSize size) {
  const bool full = size == ModelSize::full;
  const int64_t rows = full ? 128 : 8, width = full ? 768 : 32, heads = full ? 12 : 2;
  ModelGraph graph("bert_layer",
                   fmt::format("BERT-base encoder layer: {} tokens of width {}, {} heads", rows, width, heads));
  Builder build(graph, rows, width);
  const size_t x = graph.add_value({Role::input, {rows, width}, 1});
  const size_t q = build.linear(x, width, width), k = build.linear(x, width, width), v = build.linear(x, width, width);
  const size_t mixed = build.attention(q, build.heads(k, heads), build.heads(v, heads), heads, rows);
  const size_t middle = build.layer_norm(build.add(build.linear(mixed, width, width), x));
  const size_t active = build.linear(middle, width, 4 * width, "activation=2");
  build.layer_norm(build.add(build.linear(active, 4 * width, width), middle), Role::output);
  return graph;
}

ModelGraph resnet_block(ModelSize size) {
  const bool full = size == ModelSize::full;
  const int64_t side = full ? 56 : 6, wide = full ? 256 : 8, narrow = wide / 4;
  ModelGraph graph("resnet_block", fmt::format("ResNet-50 bottleneck block: {} channels of {} x {}", wide, side, side));
  const size_t x = graph.add_value({Role::input, {1, wide, side, side}, 1});
  const auto conv = [&](size_t from, int64_t inputs, int64_t outputs, int64_t kernel, const char* activation) {
    const double spread = 1 / std::sqrt(static_cast<double>(inputs * kernel * kernel));
    const size_t weight = graph.add_value({Role::weight, {outputs, inputs, kernel, kernel}, spread});
    const size_t bias = graph.add_value({Role::weight, {outputs}, spread});
    const size_t y = graph.add_value({.role = Role::temporary, .shape = {1, outputs, side, side}});
    const std::string pad = fmt::format("{0},{0},0", kernel / 2);
    graph.add_node("conv", {whole(from), whole(weight), whole(bias)}, {whole(y)},
                   {"spatial_rank=2", "groups=1", activation, "stride=1,1,0", "dilation=1,1,0", "pad_begin=" + pad,
                    "pad_end=" + pad});
    graph.count_flops(2.0 * static_cast<double>(outputs * inputs * kernel * kernel * side * side));
    return y;
  };
  const size_t reduced = conv(x, wide, narrow, 1, "activation=1");
  const size_t spatial = conv(reduced, narrow, narrow, 3, "activation=1");
  const size_t expanded = conv(spatial, narrow, wide, 1, "activation=0");
  const size_t sum = graph.add_value({.role = Role::temporary, .shape = {1, wide, side, side}});
  const size_t y = graph.add_value({.role = Role::output, .shape = {1, wide, side, side}});
  graph.add_node("add", {whole(expanded), whole(x)}, {whole(sum)});
  View zero;
  zero.number = 0;
  graph.add_node("max", {whole(sum), zero}, {whole(y)});
  return graph;
}

ModelGraph gpt_step(ModelSize size, int64_t position, int64_t most) {
  const bool full = size == ModelSize::full;
  const int64_t width = full ? 768 : 32, heads = full ? 12 : 2, blocks = full ? 4 : 2;
  ModelGraph graph("gpt_step",
                   fmt::format("GPT decode step: {} blocks of width {}, {} heads, token {} of a cache of {}", blocks,
                               width, heads, position + 1, most));
  Builder build(graph, 1, width);
  size_t x = graph.add_value({Role::input, {1, width}, 1});
  for (int64_t block = 0; block < blocks; ++block) {
    const size_t norm = build.layer_norm(x);
    const size_t q = build.linear(norm, width, width);
    std::array<View, 2> seen;
    for (View& view : seen) {
      const size_t next = build.linear(norm, width, width);
      const size_t cache = graph.add_value({Role::cache, {1, heads, most, width / heads}, 1});
      View slot = whole(cache);
      slot.slice = Slice{2, position, position + 1};
      graph.add_node("copy", {build.heads(next, heads)}, {slot});
      view = whole(cache);
      view.slice = Slice{2, 0, position + 1};
    }
    const size_t mixed = build.attention(q, seen[0], seen[1], heads, position + 1);
    const size_t middle = build.add(build.linear(mixed, width, width), x);
    const size_t active = build.linear(build.layer_norm(middle), width, 4 * width, "activation=2");
    x = build.add(build.linear(active, 4 * width, width), middle);
  }
  build.layer_norm(x, Role::output);
  return graph;
}

std::vector<ModelGraph> all_models(ModelSize size) {
  const int64_t most = size == ModelSize::full ? 512 : 16;
  std::vector<ModelGraph> models;
  models.push_back(bert_layer(size));
  models.push_back(resnet_block(size));
  models.push_back(gpt_step(size, most - 1, most));
  return models;
}

}  // namespace tool
