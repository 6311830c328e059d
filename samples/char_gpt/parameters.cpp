// SPDX-License-Identifier: Apache-2.0
// Divides the parameter vector into views, and initializes the parameters.
#include "parameters.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <utility>

namespace char_gpt {

namespace bp = backplane;

namespace {

void check_range(const char* name, int64_t value, int64_t most) {
  if (value < 1 || value > most)
    throw std::runtime_error(fmt::format("model: {} is {}; it must be 1 to {}", name, value, most));
}

// Calls `visit(tensor, shape)` for each matrix, in the order of the parameter vector.
template <class Visit>
void for_each_matrix(const Config& config, Weights& weights, const Visit& visit) {
  const int64_t c = config.width;
  visit(weights.tokens, {kVocabulary, c});
  visit(weights.positions, {config.context, c});
  for (Block& block : weights.blocks) {
    visit(block.qkv_weight, {3 * c, c});
    visit(block.mix_weight, {c, c});
    visit(block.up_weight, {4 * c, c});
    visit(block.down_weight, {c, 4 * c});
  }
}

template <class Visit>
void for_each_vector(const Config& config, Weights& weights, const Visit& visit) {
  const int64_t c = config.width;
  for (Block& block : weights.blocks) {
    visit(block.qkv_bias, {3 * c});
    visit(block.mix_bias, {c});
    visit(block.up_bias, {4 * c});
    visit(block.down_bias, {c});
    for (bp::Tensor* tensor : {&block.norm1_gain, &block.norm1_bias, &block.norm2_gain, &block.norm2_bias})
      visit(*tensor, {c});
  }
  visit(weights.norm_gain, {c});
  visit(weights.norm_bias, {c});
}

}  // namespace

void check(const Config& config) {
  check_range("context", config.context, 8192);
  check_range("width", config.width, 8192);
  check_range("heads", config.heads, 1024);
  check_range("blocks", config.blocks, 1024);
  if (config.width % config.heads != 0)
    throw std::runtime_error(
        fmt::format("model: {} heads do not divide the width {}; choose a divisor", config.heads, config.width));
}

ParameterCount count_parameters(const Config& config) {
  const int64_t c = config.width;
  const int64_t matrices = (kVocabulary + config.context) * c + config.blocks * 12 * c * c;
  return {matrices, matrices + config.blocks * 13 * c + 2 * c};
}

Weights::Weights(const Config& config, const bp::Tensor& vector) : blocks(static_cast<size_t>(config.blocks)) {
  int64_t begin = 0;
  const auto cut = [&](bp::Tensor& tensor, const bp::Dims& shape) {
    tensor = vector.slice(0, begin, begin + shape.product()).reshape(shape);
    begin += shape.product();
  };
  for_each_matrix(config, *this, cut);
  for_each_vector(config, *this, cut);
}

void initialize(const bp::Stream& stream, const Config& config, const bp::Tensor& vector, uint64_t seed) {
  Weights weights(config, vector);
  uint64_t counter = 0;
  // The standard deviation of the tables is 0.02, as in GPT-2. For all other matrices, it is 1 / sqrt(3 *
  // inputs), so that models of small width learn from the first step. For matrices that write to the residual
  // stream, it is also divided by the square root of the number of these matrices, as in GPT-2.
  const double deep = 1 / std::sqrt(2.0 * static_cast<double>(config.blocks));
  const auto draw = [&](const bp::Tensor& tensor, const bp::Dims& shape) {
    bool is_residual = false;
    for (const Block& block : weights.blocks)
      is_residual |= tensor.offset() == block.mix_weight.offset() || tensor.offset() == block.down_weight.offset();
    const bp::Tensor bits = bp::Tensor::empty(stream, BP_U32, shape);
    bp::philox(stream, bits, seed, counter);
    // Advances the counter to the next unused block. A philox block has four elements.
    counter += static_cast<uint64_t>((shape.product() + 3) / 4);
    // Keeps 24 bits, because f32 represents every 24-bit integer exactly.
    bp::shr(stream, bits, bits, bp::Tensor::scalar(BP_U32, 8));
    bp::cast(stream, tensor, bits);
    const bool is_table = tensor.offset() <= weights.positions.offset();
    // A uniform distribution on [-limit, limit] has the standard deviation limit / sqrt(3).
    const double limit =
        is_table ? 0.02 * std::sqrt(3.0) : (is_residual ? deep : 1) / std::sqrt(static_cast<double>(shape[1]));
    bp::mul(stream, tensor, tensor, bp::Tensor::scalar(tensor.dtype(), std::ldexp(limit, -23)));
    bp::sub(stream, tensor, tensor, bp::Tensor::scalar(tensor.dtype(), limit));
  };
  for_each_matrix(config, weights, draw);
  for_each_vector(config, weights, [&](const bp::Tensor& tensor, const bp::Dims&) { bp::fill(stream, tensor, 0.0); });
  for (const Block& block : weights.blocks) {
    bp::fill(stream, block.norm1_gain, 1.0);
    bp::fill(stream, block.norm2_gain, 1.0);
  }
  bp::fill(stream, weights.norm_gain, 1.0);
}

}  // namespace char_gpt
