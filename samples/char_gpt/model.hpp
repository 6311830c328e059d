// SPDX-License-Identifier: Apache-2.0
// The forward and backward pass of the GPT, built from Backplane's operators. model.cpp states the
// formulas.
#pragma once

#include <backplane/backplane.hpp>

#include <cstdint>
#include <vector>

#include "parameters.hpp"

namespace char_gpt {

// The results of a forward pass that the backward pass needs. There are `batch` texts with `length` characters
// each. M is batch * length, C is the width of the residual stream.
struct Activations {
  struct Block {
    backplane::Tensor in, norm1, mean1, rstd1;  // [M,C], [M,C], [M,1], [M,1]
    backplane::Tensor qkv, mixed, logsumexp;    // [M,3C], [M,C], [batch,heads,length]
    backplane::Tensor middle, norm2, mean2, rstd2;
    backplane::Tensor up, active;  // [M,4C], before and after gelu
  };
  Activations(const backplane::Stream& stream, const Config& config, uint32_t dtype, int64_t texts, int64_t characters);

  int64_t batch, length;
  std::vector<Block> blocks;
  backplane::Tensor out, norm, mean, rstd;  // output of the last block, and its normalisation
  backplane::Tensor logits;                 // [M, vocabulary]
};

// Gradients of activations, and temporary tensors. All blocks share these tensors.
struct Gradients {
  Gradients(const backplane::Stream& stream, const Config& config, uint32_t dtype, int64_t batch, int64_t length);

  backplane::Tensor logits;                  // [M, vocabulary]
  backplane::Tensor residual, branch, norm;  // [M,C]
  backplane::Tensor mixed, qkv, active;      // [M,C], [M,3C], [M,4C]
};

// The weights that the forward pass multiplies. Each weight is packed if the device prefers a packed layout.
// Otherwise it is a view of the model's parameters.
struct ProductWeights {
  struct Block {
    backplane::Tensor qkv, mix, up, down;
  };
  std::vector<Block> blocks;
  backplane::Tensor out;  // weight of the output layer
};

class Model {
 public:
  // The model uses `stream`, which must outlive it. `parameters` is a vector of count_parameters(config).all
  // elements of f32, or of f64 if the device supports f64. The model shares this vector with the caller, and
  // owns the gradients.
  Model(const backplane::Stream& stream, const Config& config, const backplane::Tensor& parameters);

  const Config& config() const { return config_; }
  // The gradients of the parameters, in the same layout as the parameters.
  const backplane::Tensor& gradients() const { return gradients_; }
  uint32_t dtype() const { return gradients_.dtype(); }

  // Enqueues the forward pass of `tokens` ([M], i32). The result is in activations.logits. The caller may pass
  // the result of pack(M) in `products` while the parameters do not change.
  void forward(Activations& activations, const backplane::Tensor& tokens) const;
  void forward(Activations& activations, const backplane::Tensor& tokens, const ProductWeights& products) const;
  // Enqueues the packing of the weights, for forward passes of M = `rows` characters.
  ProductWeights pack(int64_t rows) const;
  // Enqueues the computation of the loss, and of the gradient of the logits. Stores the mean loss of the M
  // characters, in nats, in `loss` (rank 0).
  void score(const Activations& activations, const backplane::Tensor& targets, const backplane::Tensor& loss,
             const Gradients& gradients) const;
  // Enqueues the backward pass. Call score() first. The result is in gradients().
  void backward(const Activations& activations, const backplane::Tensor& tokens, Gradients& gradients) const;

 private:
  void attention(const Activations& activations, const Activations::Block& block) const;
  void attention_backward(const Activations& activations, const Activations::Block& block,
                          const Gradients& gradients) const;
  void embedding_backward(const backplane::Tensor& tokens, const Activations& activations,
                          const Gradients& gradients) const;

  const backplane::Stream& stream_;
  Config config_;
  backplane::Tensor gradients_;
  Weights weights_, weight_gradients_;
};

}  // namespace char_gpt
