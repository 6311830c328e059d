// SPDX-License-Identifier: Apache-2.0
// Declares the decompositions, one function per composite. Each function appends the steps that
// compute the outputs. The operator table and docs/decisions/0016 give the error bounds and special
// cases.
#pragma once

#include "composite/builder.hpp"

namespace backplane::core::composite {

// Functions in elementwise.cpp:
void gelu(Builder& b);
void silu(Builder& b);
void sigmoid(Builder& b);
void pow(Builder& b);
void activation_bwd(Builder& b);
// Applies the activation BP_ACTIVATION_* to x.
Value activate(Builder& b, uint32_t activation, const Value& x);

// Function in elementwise_function.cpp:
void unary(Builder& b);

// Functions in softmax.cpp:
void softmax(Builder& b);
void log_softmax(Builder& b);
void softmax_bwd(Builder& b);

// Functions in norm.cpp:
void layer_norm(Builder& b);
void rms_norm(Builder& b);
void group_norm(Builder& b);
void batch_norm(Builder& b);
// Function in norm_bwd.cpp:
void norm_bwd(Builder& b);

// Function in copy.cpp, for a scalar in device memory:
void fill(Builder& b);

// Functions in matmul_linear.cpp and matmul_gemm.cpp:
void linear(Builder& b);
void gemm(Builder& b);

// Functions in conv.cpp and conv_bwd.cpp:
void conv(Builder& b);
void conv_transpose(Builder& b);
void conv_bwd_input(Builder& b);
void conv_bwd_weight(Builder& b);

// Functions in pool.cpp:
void max_pool(Builder& b);
void avg_pool(Builder& b);

// Functions in attention.cpp and rope.cpp:
void attention(Builder& b);
void attention_bwd(Builder& b);
void rope(Builder& b);
void rotate(Builder& b);

// Functions in quantize.cpp:
void quantize(Builder& b);
void dequantize(Builder& b);
// Function in quantize_matmul.cpp:
void quantized_matmul(Builder& b);

// Functions in random.cpp:
void uniform(Builder& b);
void normal(Builder& b);
void dropout(Builder& b);

// Functions in embedding.cpp, topk.cpp, loss.cpp and optimizer.cpp:
void embedding(Builder& b);
void topk(Builder& b);
void cross_entropy(Builder& b);
void nll(Builder& b);
void nll_bwd(Builder& b);
void adamw(Builder& b);

// Functions in reduce.cpp, sort.cpp and matmul.cpp, for forms that the ABI added to primitives
// after their first version:
void arg(Builder& b, uint32_t op);
void sort(Builder& b);
void matmul(Builder& b);

}  // namespace backplane::core::composite
