// SPDX-License-Identifier: Apache-2.0
// A GPT. x is the residual stream, which begins as the sum of the embeddings of tokens and positions. Each
// block adds mix(attention(norm(x))) to x, and then adds down(gelu(up(norm(x)))). The logits are the product of
// norm(x) and the transposed table of token embeddings.
#include "model.hpp"

#include <cmath>

namespace char_gpt {

namespace bp = backplane;

namespace {

constexpr float kNormEpsilon = 1e-5f;

void layer_norm(const bp::Stream& stream, const bp::Tensor& y, const bp::Tensor& mean, const bp::Tensor& rstd,
                const bp::Tensor& x, const bp::Tensor& gain, const bp::Tensor& bias) {
  auto attributes = bp::attributes<BP_OP_LAYER_NORM>();
  attributes.axes = bp::axes(1);
  attributes.epsilon = kNormEpsilon;
  bp::execute(stream, BP_OP_LAYER_NORM, {x, gain, bias}, {y, mean, rstd}, &attributes);
}

void layer_norm_backward(const bp::Stream& stream, const bp::Tensor& dx, const bp::Tensor& d_gain,
                         const bp::Tensor& d_bias, const bp::Tensor& dy, const bp::Tensor& x, const bp::Tensor& gain,
                         const bp::Tensor& mean, const bp::Tensor& rstd) {
  auto attributes = bp::attributes<BP_OP_NORM_BWD>();
  attributes.norm = BP_NORM_LAYER;
  attributes.axes = bp::axes(1);
  attributes.epsilon = kNormEpsilon;
  bp::execute(stream, BP_OP_NORM_BWD, {dy, x, gain, mean, rstd}, {dx, d_gain, d_bias}, &attributes);
}

// Computes y = x w^T + bias. The bias is optional.
void linear(const bp::Stream& stream, const bp::Tensor& y, const bp::Tensor& x, const bp::Tensor& weight,
            const bp::Tensor& bias = {}) {
  const auto attributes = bp::attributes<BP_OP_LINEAR>();
  if (bias.dtype())
    bp::execute(stream, BP_OP_LINEAR, {x, weight, bias}, {y}, &attributes);
  else
    bp::execute(stream, BP_OP_LINEAR, {x, weight}, {y}, &attributes);
}

// Returns the weight in the packed layout that the device prefers for inputs of `rows` rows. Returns the plain
// weight if the device prefers it.
bp::Tensor packed(const bp::Stream& stream, int64_t rows, const bp::Tensor& weight, const bp::Tensor& bias = {}) {
  const auto shaped = [&](int64_t columns) { return bp::Tensor({}, 0, weight.dtype(), {rows, columns}, {columns, 1}); };
  const bp::Tensor x = shaped(weight.extent(1)), y = shaped(weight.extent(0));
  const auto attributes = bp::attributes<BP_OP_LINEAR>();
  try {
    return bp::pack(stream, BP_OP_LINEAR, 1, {x, weight, bias}, {y}, &attributes);
  } catch (const bp::Error& error) {
    if (error.status() != BP_UNSUPPORTED) throw;
    return weight;
  }
}

void linear_backward(const bp::Stream& stream, const bp::Tensor& dx, const bp::Tensor& d_weight,
                     const bp::Tensor& d_bias, const bp::Tensor& dy, const bp::Tensor& x, const bp::Tensor& weight) {
  bp::matmul(stream, d_weight, dy.transpose(), x);
  if (d_bias.dtype()) bp::reduce_sum(stream, d_bias.unsqueeze(0), dy, bp::axes(0));
  bp::matmul(stream, dx, dy, weight);
}

// Divides a tensor [M, parts * C] into `parts` tensors [M, C], and returns number `part` as a view [batch,
// heads, length, C / heads]. The parts of a tensor [M, 3C] are query (0), key (1) and value (2).
bp::Tensor heads_of(const bp::Tensor& tensor, const Activations& of, const Config& config, int64_t part,
                    int64_t parts) {
  return tensor.reshape({of.batch, of.length, parts, config.heads, config.width / config.heads})
      .select_at(2, part)
      .permute({0, 2, 1, 3});
}

bp_attention_attributes attention_attributes(const Config& config) {
  auto attributes = bp::attributes<BP_OP_ATTENTION>();
  const int64_t head_width = config.width / config.heads;
  attributes.causal = BP_CAUSAL_LOWER_RIGHT;
  attributes.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(head_width)));
  return attributes;
}

}  // namespace

Activations::Activations(const bp::Stream& stream, const Config& config, uint32_t dtype, int64_t texts,
                         int64_t characters)
    : batch(texts), length(characters), blocks(static_cast<size_t>(config.blocks)) {
  const int64_t c = config.width;
  const auto make = [&](int64_t columns) { return bp::Tensor::empty(stream, dtype, {batch * length, columns}); };
  for (Block& block : blocks) {
    block.in = make(c), block.norm1 = make(c), block.mean1 = make(1), block.rstd1 = make(1);
    block.qkv = make(3 * c), block.mixed = make(c);
    block.logsumexp = bp::Tensor::empty(stream, dtype, {batch, config.heads, length});
    block.middle = make(c), block.norm2 = make(c), block.mean2 = make(1), block.rstd2 = make(1);
    block.up = make(4 * c), block.active = make(4 * c);
  }
  out = make(c), norm = make(c), mean = make(1), rstd = make(1);
  logits = make(kVocabulary);
}

Gradients::Gradients(const bp::Stream& stream, const Config& config, uint32_t dtype, int64_t batch, int64_t length) {
  const int64_t c = config.width;
  const auto make = [&](int64_t columns) { return bp::Tensor::empty(stream, dtype, {batch * length, columns}); };
  logits = make(kVocabulary);
  residual = make(c), branch = make(c), norm = make(c), mixed = make(c), qkv = make(3 * c);
  active = make(4 * c);
}

Model::Model(const bp::Stream& stream, const Config& config, const bp::Tensor& parameters)
    : stream_(stream),
      config_(config),
      gradients_(bp::Tensor::empty(stream, parameters.dtype(), parameters.shape())),
      weights_(config, parameters),
      weight_gradients_(config, gradients_) {}

void Model::attention(const Activations& activations, const Activations::Block& block) const {
  const bp_attention_attributes attributes = attention_attributes(config_);
  const auto part = [&](int64_t index) { return heads_of(block.qkv, activations, config_, index, 3); };
  bp::execute(stream_, BP_OP_ATTENTION, {part(0), part(1), part(2)},
              {heads_of(block.mixed, activations, config_, 0, 1), block.logsumexp}, &attributes);
}

ProductWeights Model::pack(int64_t rows) const {
  ProductWeights products;
  for (const Block& weight : weights_.blocks) {
    products.blocks.push_back({packed(stream_, rows, weight.qkv_weight, weight.qkv_bias),
                               packed(stream_, rows, weight.mix_weight, weight.mix_bias),
                               packed(stream_, rows, weight.up_weight, weight.up_bias),
                               packed(stream_, rows, weight.down_weight, weight.down_bias)});
  }
  products.out = packed(stream_, rows, weights_.tokens);
  return products;
}

void Model::forward(Activations& activations, const bp::Tensor& tokens) const {
  ProductWeights plain;
  for (const Block& weight : weights_.blocks) {
    plain.blocks.push_back({weight.qkv_weight, weight.mix_weight, weight.up_weight, weight.down_weight});
  }
  plain.out = weights_.tokens;
  forward(activations, tokens, plain);
}

void Model::forward(Activations& activations, const bp::Tensor& tokens, const ProductWeights& products) const {
  const bp::Tensor& x = activations.blocks.front().in;
  bp::execute(stream_, BP_OP_EMBEDDING, {weights_.tokens, tokens}, {x});
  const bp::Tensor texts = x.reshape({activations.batch, activations.length, config_.width});
  bp::add(stream_, texts, texts, weights_.positions.slice(0, 0, activations.length));
  for (size_t i = 0; i < weights_.blocks.size(); ++i) {
    const Block& weight = weights_.blocks[i];
    const ProductWeights::Block& product = products.blocks[i];
    const Activations::Block& a = activations.blocks[i];
    const bp::Tensor& out = i + 1 < activations.blocks.size() ? activations.blocks[i + 1].in : activations.out;
    layer_norm(stream_, a.norm1, a.mean1, a.rstd1, a.in, weight.norm1_gain, weight.norm1_bias);
    linear(stream_, a.qkv, a.norm1, product.qkv, weight.qkv_bias);
    attention(activations, a);
    linear(stream_, a.middle, a.mixed, product.mix, weight.mix_bias);
    bp::add(stream_, a.middle, a.middle, a.in);
    layer_norm(stream_, a.norm2, a.mean2, a.rstd2, a.middle, weight.norm2_gain, weight.norm2_bias);
    linear(stream_, a.up, a.norm2, product.up, weight.up_bias);
    const auto gelu = bp::attributes<BP_OP_GELU>();
    bp::execute(stream_, BP_OP_GELU, {a.up}, {a.active}, &gelu);
    linear(stream_, out, a.active, product.down, weight.down_bias);
    bp::add(stream_, out, out, a.middle);
  }
  layer_norm(stream_, activations.norm, activations.mean, activations.rstd, activations.out, weights_.norm_gain,
             weights_.norm_bias);
  linear(stream_, activations.logits, activations.norm, products.out);
}

void Model::score(const Activations& activations, const bp::Tensor& targets, const bp::Tensor& loss,
                  const Gradients& gradients) const {
  auto attributes = bp::attributes<BP_OP_CROSS_ENTROPY>();
  attributes.reduction = BP_REDUCTION_MEAN;
  attributes.ignore_index = -1;
  bp::execute(stream_, BP_OP_CROSS_ENTROPY, {activations.logits, targets}, {loss, gradients.logits}, &attributes);
}

void Model::attention_backward(const Activations& activations, const Activations::Block& block,
                               const Gradients& gradients) const {
  const bp_attention_attributes attributes = attention_attributes(config_);
  const auto part = [&](const bp::Tensor& tensor, int64_t index, int64_t parts = 3) {
    return heads_of(tensor, activations, config_, index, parts);
  };
  bp::execute(stream_, BP_OP_ATTENTION_BWD,
              {part(gradients.mixed, 0, 1), part(block.qkv, 0), part(block.qkv, 1), part(block.qkv, 2),
               part(block.mixed, 0, 1), block.logsumexp},
              {part(gradients.qkv, 0), part(gradients.qkv, 1), part(gradients.qkv, 2)}, &attributes);
}

// Adds the gradient that flows through the embedding to the gradient of the token table. The latter already
// contains the gradient that flows through the output layer. Also computes the gradient of the positions.
void Model::embedding_backward(const bp::Tensor& tokens, const Activations& activations,
                               const Gradients& gradients) const {
  const bp::Tensor& dx = gradients.residual;
  bp::scatter(stream_, weight_gradients_.tokens, tokens.unsqueeze(1).broadcast_to(dx.shape()), dx, 0, BP_SCATTER_ADD);
  const bp::Tensor& positions = weight_gradients_.positions;
  if (activations.length < config_.context) bp::fill(stream_, positions, 0.0);
  bp::reduce_sum(stream_, positions.slice(0, 0, activations.length).unsqueeze(0),
                 dx.reshape({activations.batch, activations.length, config_.width}), bp::axes(0));
}

void Model::backward(const Activations& activations, const bp::Tensor& tokens, Gradients& gradients) const {
  const Weights& d = weight_gradients_;
  auto gelu = bp::attributes<BP_OP_ACTIVATION_BWD>();
  gelu.activation = BP_ACTIVATION_GELU_ERF;
  linear_backward(stream_, gradients.norm, d.tokens, {}, gradients.logits, activations.norm, weights_.tokens);
  layer_norm_backward(stream_, gradients.residual, d.norm_gain, d.norm_bias, gradients.norm, activations.out,
                      weights_.norm_gain, activations.mean, activations.rstd);
  for (size_t i = weights_.blocks.size(); i-- > 0;) {
    const Block &weight = weights_.blocks[i], &dw = d.blocks[i];
    const Activations::Block& a = activations.blocks[i];
    // `residual` is the gradient of the block's output. The output is a sum, so it is also the gradient of each
    // summand.
    linear_backward(stream_, gradients.active, dw.down_weight, dw.down_bias, gradients.residual, a.active,
                    weight.down_weight);
    bp::execute(stream_, BP_OP_ACTIVATION_BWD, {gradients.active, a.up}, {gradients.active}, &gelu);
    linear_backward(stream_, gradients.norm, dw.up_weight, dw.up_bias, gradients.active, a.norm2, weight.up_weight);
    layer_norm_backward(stream_, gradients.branch, dw.norm2_gain, dw.norm2_bias, gradients.norm, a.middle,
                        weight.norm2_gain, a.mean2, a.rstd2);
    bp::add(stream_, gradients.residual, gradients.residual, gradients.branch);
    linear_backward(stream_, gradients.mixed, dw.mix_weight, dw.mix_bias, gradients.residual, a.mixed,
                    weight.mix_weight);
    attention_backward(activations, a, gradients);
    linear_backward(stream_, gradients.norm, dw.qkv_weight, dw.qkv_bias, gradients.qkv, a.norm1, weight.qkv_weight);
    layer_norm_backward(stream_, gradients.branch, dw.norm1_gain, dw.norm1_bias, gradients.norm, a.in,
                        weight.norm1_gain, a.mean1, a.rstd1);
    bp::add(stream_, gradients.residual, gradients.residual, gradients.branch);
  }
  embedding_backward(tokens, activations, gradients);
}

}  // namespace char_gpt
