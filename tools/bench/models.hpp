// SPDX-License-Identifier: Apache-2.0
// The models of `bench model`, with random weights.
#pragma once

#include <vector>

#include "bench/model_graph.hpp"

namespace tool {

// full: the models' real sizes. small: sizes that a simple plugin runs in milliseconds, to test
// every operator.
enum class ModelSize { full, small };

// One encoder layer of BERT-base: 128 tokens of width 768, 12 heads, an MLP of 3072 with gelu.
ModelGraph bert_layer(ModelSize size);
// A bottleneck block of ResNet-50's first stage: 256 x 56 x 56, convolutions of 64, 64 and 256
// channels. Batch norms are folded into the weights, as for inference.
ModelGraph resnet_block(ModelSize size);
// One decode step of a GPT with 4 blocks (width 768, 12 heads). It adds the token at `position`
// (from 0) to a cache of `most` tokens and attends to all tokens up to itself.
ModelGraph gpt_step(ModelSize size, int64_t position, int64_t most);

// The three models. gpt_step is the last step of a cache of 512 tokens (small: 16).
std::vector<ModelGraph> all_models(ModelSize size);

}  // namespace tool
