// SPDX-License-Identifier: Apache-2.0
#include "bench/model_builder.hpp"

#include <fmt/format.h>

#include <cmath>

namespace tool {
namespace {

// Returns the spread of the random weights of a layer in which each output is a sum of `terms` products. With this
// spread, outputs have about the magnitude of the inputs.
double weight_spread(int64_t terms) { return 1 / std::sqrt(static_cast<double>(terms)); }

}  // namespace

size_t SequenceBuilder::linear(size_t x, int64_t inputs, int64_t outputs, const char* activation, Role role) {
  const double spread = weight_spread(inputs);
  const size_t weight = graph_.add_value({Role::weight, {outputs, inputs}, spread});
  const size_t bias = graph_.add_value({Role::weight, {outputs}, spread});
  const size_t y = graph_.add_value({.role = role, .shape = {rows_, outputs}});
  graph_.add_node("linear", {whole(x), whole(weight), whole(bias)}, {whole(y)}, {activation});
  graph_.count_flops(2.0 * static_cast<double>(rows_ * inputs * outputs));
  return y;
}

size_t SequenceBuilder::linear_w4(size_t x, int64_t inputs, int64_t outputs) {
  constexpr int64_t block = 32;
  const double scale = weight_spread(inputs) / 8;  // weights are in [-8, 7] before they are scaled
  const size_t weight = graph_.add_value({Role::weight, {outputs, inputs / 2}, 127.5, 127.5, BP_U8});
  const size_t scales = graph_.add_value({Role::weight, {outputs, inputs / block}, scale / 4, scale});
  const size_t zero_point = graph_.add_value({Role::weight, {1}, 0, 8, BP_U8});
  const size_t y = temporary({rows_, outputs});
  graph_.add_node("quantized_matmul", {whole(x), whole(weight), whole(scales), whole(zero_point)}, {whole(y)},
                  {"weight_bits=4", fmt::format("block={}", block)});
  graph_.count_flops(2.0 * static_cast<double>(rows_ * inputs * outputs));
  return y;
}

size_t SequenceBuilder::layer_norm(size_t x, Role role) {
  const size_t gain = graph_.add_value({Role::weight, {width_}, 0.1, 1});
  const size_t bias = graph_.add_value({Role::weight, {width_}, 0.1});
  const size_t y = graph_.add_value({.role = role, .shape = {rows_, width_}});
  graph_.add_node("layer_norm", {whole(x), whole(gain), whole(bias)}, {whole(y)}, {"axes=2", "epsilon=1e-5"});
  return y;
}

size_t SequenceBuilder::rms_norm(size_t x) {
  const size_t gain = graph_.add_value({Role::weight, {width_}, 0.1, 1});
  const size_t y = temporary({rows_, width_});
  graph_.add_node("rms_norm", {whole(x), whole(gain)}, {whole(y)}, {"axes=2", "epsilon=1e-5"});
  return y;
}

size_t SequenceBuilder::add(size_t a, size_t b, Role role) {
  const size_t sum = graph_.add_value({.role = role, .shape = graph_.values()[a].shape});
  graph_.add_node("add", {whole(a), whole(b)}, {whole(sum)});
  return sum;
}

size_t SequenceBuilder::gate(size_t a, size_t b) {
  const size_t active = temporary(graph_.values()[a].shape), y = temporary(graph_.values()[a].shape);
  graph_.add_node("silu", {whole(a)}, {whole(active)});
  graph_.add_node("mul", {whole(active), whole(b)}, {whole(y)});
  return y;
}

size_t SequenceBuilder::rope(size_t x, size_t position, int64_t heads) {
  const size_t y = temporary(graph_.values()[x].shape);
  View positions = whole(position);
  positions.reshape = {1, 1, rows_};
  positions.broadcast = {1, heads, rows_};
  graph_.add_node("rope", {this->heads(x, heads), positions}, {this->heads(y, heads)}, {"base=500000"});
  return y;
}

View SequenceBuilder::heads(size_t value, int64_t heads) const {
  View view = whole(value);
  view.reshape = {1, rows_, heads, last_extent(value) / heads};
  view.permute = {0, 2, 1, 3};
  return view;
}

View SequenceBuilder::append(size_t value, int64_t heads, int64_t row, int64_t most) {
  const size_t cache = graph_.add_value({Role::cache, {1, heads, most, last_extent(value) / heads}, 1});
  View slot = whole(cache), seen = whole(cache);
  slot.slice = Slice{2, row, row + 1};
  seen.slice = Slice{2, 0, row + 1};
  graph_.add_node("copy", {this->heads(value, heads)}, {slot});
  return seen;
}

size_t SequenceBuilder::attention(size_t q, const View& k, const View& v, int64_t heads, int64_t keys) {
  const size_t y = temporary({rows_, width_});
  const double scale = weight_spread(width_ / heads);
  graph_.add_node("attention", {this->heads(q, heads), k, v}, {this->heads(y, heads)},
                  {fmt::format("scale={}", scale)});
  graph_.count_flops(4.0 * static_cast<double>(rows_ * keys * width_));
  return y;
}

size_t ImageBuilder::conv(size_t x, int64_t outputs, int64_t kernel, const char* activation) {
  const int64_t terms = channels(x) * kernel * kernel;
  const size_t weight = graph_.add_value({Role::weight, {outputs, channels(x), kernel, kernel}, weight_spread(terms)});
  const size_t bias = graph_.add_value({Role::weight, {outputs}, weight_spread(terms)});
  const size_t y = image(outputs);
  const std::string pad = fmt::format("{0},{0},0", kernel / 2);
  graph_.add_node("conv", {whole(x), whole(weight), whole(bias)}, {whole(y)},
                  {"spatial_rank=2", "groups=1", activation, "stride=1,1,0", "dilation=1,1,0", "pad_begin=" + pad,
                   "pad_end=" + pad});
  graph_.count_flops(2.0 * static_cast<double>(outputs * terms * side_ * side_));
  return y;
}

size_t ImageBuilder::group_norm(size_t x, int64_t groups) {
  const size_t gain = graph_.add_value({Role::weight, {channels(x)}, 0.1, 1});
  const size_t bias = graph_.add_value({Role::weight, {channels(x)}, 0.1});
  const size_t y = image(channels(x));
  graph_.add_node("group_norm", {whole(x), whole(gain), whole(bias)}, {whole(y)},
                  {fmt::format("groups={}", groups), "epsilon=1e-5"});
  return y;
}

size_t ImageBuilder::silu(size_t x) {
  const size_t y = graph_.add_value({.role = Role::temporary, .shape = graph_.values()[x].shape});
  graph_.add_node("silu", {whole(x)}, {whole(y)});
  return y;
}

size_t ImageBuilder::add(size_t x, size_t y, Role role) {
  const size_t sum = image(channels(x), role);
  View added = whole(y);
  if (graph_.values()[y].shape.size() == 2) {
    added.reshape = {1, channels(x), 1, 1};
    added.broadcast = graph_.values()[x].shape;
  }
  graph_.add_node("add", {whole(x), added}, {whole(sum)});
  return sum;
}

void ImageBuilder::relu_in_place(size_t x) {
  View zero;
  zero.number = 0;
  graph_.add_node("max", {whole(x), zero}, {whole(x)});
}

}  // namespace tool
