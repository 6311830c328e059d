// SPDX-License-Identifier: Apache-2.0
// The models of `bench model`, with random weights.
#pragma once

#include <vector>

#include "bench/model_graph.hpp"

namespace tool {

// The size `full` means the real sizes of the models. The size `small` means sizes that a simple
// plugin runs in milliseconds, for tests of every operator.
enum class ModelSize { full, small };

// One encoder layer of BERT-base with 128 tokens of width 768, 12 heads, and an MLP of width 3072
// with gelu.
ModelGraph bert_layer(ModelSize size);
// A bottleneck block of ResNet-50's first stage. The block processes an image of 256 x 56 x 56 with convolutions to 64,
// 64 and 256 channels. The weights include the batch norms, as usual for inference.
ModelGraph resnet_block(ModelSize size);
// One decode step of a GPT with 4 blocks (width 768, 12 heads). The step adds the token at
// `position`, which counts from 0, to a cache of `most` tokens. This token attends to itself and
// all earlier tokens.
ModelGraph gpt_step(ModelSize size, int64_t position, int64_t most);

// A residual block of a diffusion U-Net, as in Stable Diffusion: an image of 320 x 32 x 32, two
// convolutions of 3 x 3, group norms with silu, and a time embedding of width 1280.
ModelGraph unet_block(ModelSize size);
// The decode step of one layer of Llama-3-8B with weights of 4 bits in blocks of 32, and a cache of 512
// tokens. Four heads of queries share a head of keys.
ModelGraph llama_layer(ModelSize size);
// A perceptron for one sample of 1024 numbers, with three layers of width 2048, relu, and 1024 outputs.
ModelGraph mlp(ModelSize size);

// Returns all six models. The GPT model is the step that fills the last place of a cache of 512 tokens, or of 16 tokens
// if `size` is small.
std::vector<ModelGraph> all_models(ModelSize size);

}  // namespace tool
