// SPDX-License-Identifier: Apache-2.0
// The decompositions, one function per composite. Each appends the steps that compute the outputs.
// For bounds and special cases see the operator table and docs/decisions/0016.
#pragma once

#include "composite/builder.hpp"

namespace backplane::core::composite {

// elementwise.cpp
void gelu(Builder& b);
void silu(Builder& b);
void sigmoid(Builder& b);
void pow(Builder& b);
// Applies BP_ACTIVATION_* to x.
Value activate(Builder& b, uint32_t activation, const Value& x);

// softmax.cpp
void softmax(Builder& b);
void log_softmax(Builder& b);
void softmax_bwd(Builder& b);

// norm.cpp
void layer_norm(Builder& b);
void rms_norm(Builder& b);
void group_norm(Builder& b);
void batch_norm(Builder& b);
// norm_bwd.cpp
void norm_bwd(Builder& b);

// matmul_linear.cpp
void linear(Builder& b);

// conv.cpp, conv_bwd.cpp
void conv(Builder& b);
void conv_transpose(Builder& b);
void conv_bwd_input(Builder& b);
void conv_bwd_weight(Builder& b);

// pool.cpp
void max_pool(Builder& b);
void avg_pool(Builder& b);

// attention.cpp, rope.cpp
void attention(Builder& b);
void rope(Builder& b);

// quantize.cpp
void quantize(Builder& b);
void dequantize(Builder& b);
// quantize_matmul.cpp
void quantized_matmul(Builder& b);

// embedding.cpp, topk.cpp, loss.cpp, optimizer.cpp
void embedding(Builder& b);
void topk(Builder& b);
void cross_entropy(Builder& b);
void adamw(Builder& b);

// reduce.cpp, sort.cpp, matmul.cpp: forms of primitives that a later ABI version added
void arg(Builder& b, uint32_t op);
void sort(Builder& b);
void matmul(Builder& b);

}  // namespace backplane::core::composite
