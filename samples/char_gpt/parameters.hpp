// SPDX-License-Identifier: Apache-2.0
// The size of the model, and its parameters: one vector, and views of parts of this vector.
#pragma once

#include <backplane/backplane.hpp>

#include <cstdint>
#include <vector>

namespace char_gpt {

constexpr int64_t kVocabulary = 256;  // a character is a byte, so the model accepts any text

// The shape of the model, which a checkpoint stores. All numbers are positive, and `heads` divides
// `width`.
struct Config {
  int64_t context = 128;  // maximum number of characters that a prediction uses
  int64_t width = 128;    // width of the residual stream
  int64_t heads = 4;
  int64_t blocks = 4;

  bool operator==(const Config&) const = default;
};

// Throws std::runtime_error if a number is out of range. The message states the number and its range.
void check(const Config& config);

struct Block {
  // Weights have the shape [outputs, inputs]: [3C,C], [C,C], [4C,C] and [C,4C].
  backplane::Tensor qkv_weight, mix_weight, up_weight, down_weight;
  backplane::Tensor qkv_bias, mix_bias, up_bias, down_bias;          // [outputs]
  backplane::Tensor norm1_gain, norm1_bias, norm2_gain, norm2_bias;  // [C]
};

// Views of a parameter vector, or of a gradient vector with the same layout.
struct Weights {
  backplane::Tensor tokens;     // [vocabulary, C], the embedding and the weights of the output layer
  backplane::Tensor positions;  // [context, C]
  std::vector<Block> blocks;
  backplane::Tensor norm_gain, norm_bias;  // [C]

  // Makes views of `vector`. The vector begins with the matrices, because weight decay applies only to
  // matrices.
  Weights(const Config& config, const backplane::Tensor& vector);
};

struct ParameterCount {
  int64_t matrices = 0, all = 0;
};
ParameterCount count_parameters(const Config& config);

// Enqueues the initialization of the parameters. The operator philox draws the matrices, so that every device
// starts with the same bits.
void initialize(const backplane::Stream& stream, const Config& config, const backplane::Tensor& vector, uint64_t seed);

}  // namespace char_gpt
