// SPDX-License-Identifier: Apache-2.0
// The GPT: forward and backward pass in operators of the table. model.cpp defines a block.
#pragma once

#include <backplane/backplane.hpp>

#include <cstdint>
#include <vector>

#include "parameters.hpp"

namespace char_gpt {

// Results of the forward pass that the backward pass needs: `batch` texts of `length` characters
// each. M = batch * length.
struct Activations {
  struct Block {
    backplane::Tensor in, norm1, mean1, rstd1;  // [M,C], [M,C], [M,1], [M,1]
    backplane::Tensor qkv, mixed, logsumexp;    // [M,3C], [M,C], [batch,heads,length]
    backplane::Tensor middle, norm2, mean2, rstd2;
    backplane::Tensor up, active;  // [M,4C]: before and after gelu
  };
  Activations(const backplane::Stream& stream, const Config& config, uint32_t dtype, int64_t texts, int64_t characters);

  int64_t batch, length;
  std::vector<Block> blocks;
  backplane::Tensor out, norm, mean, rstd;  // the last block's output and its normalisation
  backplane::Tensor logits;                 // [M, vocabulary]
};

// Gradients of activations, and temporaries. All blocks share one set.
struct Gradients {
  Gradients(const backplane::Stream& stream, const Config& config, uint32_t dtype, int64_t batch, int64_t length);

  backplane::Tensor logits;                      // [M, vocabulary]
  backplane::Tensor residual, branch, norm;      // [M,C]
  backplane::Tensor mixed, qkv;                  // [M,C], [M,3C]
  backplane::Tensor active, derivative, square;  // [M,4C]
  backplane::Tensor scores, weights;             // [batch,heads,length,length]
  backplane::Tensor causal;                      // [length,length]: true where a query sees a key
};

class Model {
 public:
  // Borrows the stream. Shares the parameters: a vector of count_parameters(config).all elements,
  // f32, or f64 if the device supports it. Owns its gradients.
  Model(const backplane::Stream& stream, const Config& config, const backplane::Tensor& parameters);

  const Config& config() const { return config_; }
  // Has the layout of the parameters.
  const backplane::Tensor& gradients() const { return gradients_; }
  uint32_t dtype() const { return gradients_.dtype(); }

  // Enqueues the forward pass of `tokens` ([M], i32). The result is activations.logits.
  void forward(Activations& activations, const backplane::Tensor& tokens) const;
  // Enqueues the loss, in nats, as the mean over M, into `loss` (rank 0), and
  // the gradient of the logits.
  void score(const Activations& activations, const backplane::Tensor& targets, const backplane::Tensor& loss,
             const Gradients& gradients) const;
  // Enqueues the backward pass after `score`. The result is gradients().
  void backward(const Activations& activations, const backplane::Tensor& tokens, Gradients& gradients) const;

 private:
  void attention(const Activations& activations, const Activations::Block& block) const;
  void attention_backward(const Activations& activations, const Activations::Block& block,
                          const Gradients& gradients) const;
  void gelu_backward(const backplane::Tensor& x, const Gradients& gradients) const;
  void embedding_backward(const backplane::Tensor& tokens, const Activations& activations,
                          const Gradients& gradients) const;
  backplane::Tensor scalar(double value) const { return backplane::Tensor::scalar(dtype(), value); }

  const backplane::Stream& stream_;
  Config config_;
  backplane::Tensor gradients_;
  Weights weights_, weight_gradients_;
};

}  // namespace char_gpt
