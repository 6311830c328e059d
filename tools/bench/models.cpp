// SPDX-License-Identifier: Apache-2.0
#include "bench/models.hpp"

#include <fmt/format.h>

#include "bench/model_builder.hpp"

namespace tool {

ModelGraph bert_layer(ModelSize size) {
  const bool full = size == ModelSize::full;
  const int64_t rows = full ? 128 : 8, width = full ? 768 : 32, heads = full ? 12 : 2;
  ModelGraph graph("bert_layer",
                   fmt::format("BERT-base encoder layer: {} tokens of width {}, {} heads", rows, width, heads));
  SequenceBuilder build(graph, rows, width);
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
  ImageBuilder build(graph, side);
  const size_t x = graph.add_value({Role::input, {1, wide, side, side}, 1});
  const size_t reduced = build.conv(x, narrow, 1, "activation=1");
  const size_t spatial = build.conv(reduced, narrow, 3, "activation=1");
  build.relu_in_place(build.add(build.conv(spatial, wide, 1), x, Role::output));
  return graph;
}

ModelGraph gpt_step(ModelSize size, int64_t position, int64_t most) {
  const bool full = size == ModelSize::full;
  const int64_t width = full ? 768 : 32, heads = full ? 12 : 2, blocks = full ? 4 : 2;
  ModelGraph graph("gpt_step",
                   fmt::format("GPT decode step: {} blocks of width {}, {} heads, token {} of a cache of {}", blocks,
                               width, heads, position + 1, most));
  SequenceBuilder build(graph, 1, width);
  size_t x = graph.add_value({Role::input, {1, width}, 1});
  for (int64_t block = 0; block < blocks; ++block) {
    const size_t norm = build.layer_norm(x);
    const size_t q = build.linear(norm, width, width);
    const View k = build.append(build.linear(norm, width, width), heads, position, most);
    const View v = build.append(build.linear(norm, width, width), heads, position, most);
    const size_t mixed = build.attention(q, k, v, heads, position + 1);
    const size_t middle = build.add(build.linear(mixed, width, width), x);
    const size_t active = build.linear(build.layer_norm(middle), width, 4 * width, "activation=2");
    x = build.add(build.linear(active, 4 * width, width), middle);
  }
  build.layer_norm(x, Role::output);
  return graph;
}

ModelGraph unet_block(ModelSize size) {
  const bool full = size == ModelSize::full;
  const int64_t side = full ? 32 : 6, channels = full ? 320 : 8, groups = full ? 32 : 2, width = 4 * channels;
  ModelGraph graph("unet_block",
                   fmt::format("residual block of a diffusion U-Net: {} channels of {} x {}, time of width {}",
                               channels, side, side, width));
  SequenceBuilder time(graph, 1, width);
  ImageBuilder build(graph, side);
  const size_t x = graph.add_value({Role::input, {1, channels, side, side}, 1});
  const size_t embedding = graph.add_value({Role::input, {1, width}, 1});
  const size_t first = build.conv(build.silu(build.group_norm(x, groups)), channels, 3);
  const size_t shift = time.linear(build.silu(embedding), width, channels);
  const size_t timed = build.add(first, shift);
  const size_t second = build.conv(build.silu(build.group_norm(timed, groups)), channels, 3);
  build.add(second, x, Role::output);
  return graph;
}

ModelGraph llama_layer(ModelSize size) {
  const bool full = size == ModelSize::full;
  const int64_t width = full ? 4096 : 64, inner = full ? 14336 : 128, heads = full ? 32 : 4, key_heads = heads / 4;
  const int64_t most = full ? 512 : 16, position = most - 1, extent = width / heads;
  ModelGraph graph("llama_layer",
                   fmt::format("Llama-3-8B layer with 4-bit weights: width {}, inner width {}, {} heads, {} heads of "
                               "keys, token {} of a cache of {}",
                               width, inner, heads, key_heads, position + 1, most));
  SequenceBuilder build(graph, 1, width);
  const size_t x = graph.add_value({Role::input, {1, width}, 1});
  const size_t at = graph.add_value({Role::input, {1}, 0, static_cast<double>(position), BP_I32});
  const size_t norm = build.rms_norm(x);
  const size_t q = build.rope(build.linear_w4(norm, width, width), at, heads);
  const size_t key = build.rope(build.linear_w4(norm, width, key_heads * extent), at, key_heads);
  const View k = build.append(key, key_heads, position, most);
  const View v = build.append(build.linear_w4(norm, width, key_heads * extent), key_heads, position, most);
  const size_t mixed = build.attention(q, k, v, heads, position + 1);
  const size_t middle = build.add(build.linear_w4(mixed, width, width), x);
  const size_t second = build.rms_norm(middle);
  const size_t gated = build.gate(build.linear_w4(second, width, inner), build.linear_w4(second, width, inner));
  build.add(build.linear_w4(gated, inner, width), middle, Role::output);
  return graph;
}

ModelGraph mlp(ModelSize size) {
  const bool full = size == ModelSize::full;
  const int64_t inputs = full ? 1024 : 16, width = full ? 2048 : 32, outputs = full ? 1024 : 16;
  ModelGraph graph(
      "mlp", fmt::format("perceptron of one sample: {} inputs, 3 layers of {}, {} outputs", inputs, width, outputs));
  SequenceBuilder build(graph, 1, outputs);
  size_t x = graph.add_value({Role::input, {1, inputs}, 1});
  x = build.linear(x, inputs, width, "activation=1");
  x = build.linear(x, width, width, "activation=1");
  x = build.linear(x, width, width, "activation=1");
  build.linear(x, width, outputs, "activation=0", Role::output);
  return graph;
}

std::vector<ModelGraph> all_models(ModelSize size) {
  const int64_t most = size == ModelSize::full ? 512 : 16;
  std::vector<ModelGraph> models;
  models.push_back(bert_layer(size));
  models.push_back(resnet_block(size));
  models.push_back(gpt_step(size, most - 1, most));
  models.push_back(unet_block(size));
  models.push_back(llama_layer(size));
  models.push_back(mlp(size));
  return models;
}

}  // namespace tool
