// SPDX-License-Identifier: Apache-2.0
// Declares the functions that `evaluate` calls. Each function is in the source file of its family,
// and returns one Expected per output. A comment after a function lists its operators if the name
// does not.
#pragma once

#include "oracle.hpp"

namespace backplane::conformance::oracle {

std::vector<Expected> fill(const Call& call);
std::vector<Expected> copy(const Call& call);
std::vector<Expected> iota(const Call& call);
std::vector<Expected> cast(const Call& call);
std::vector<Expected> unary(const Call& call);
std::vector<Expected> binary(const Call& call);
std::vector<Expected> compare(const Call& call);
std::vector<Expected> select(const Call& call);
std::vector<Expected> gather(const Call& call);
std::vector<Expected> scatter(const Call& call);
std::vector<Expected> reduce(const Call& call);  // reduce_sum, reduce_prod, reduce_max, reduce_min
std::vector<Expected> arg(const Call& call);     // argmax, argmin
std::vector<Expected> cumsum(const Call& call);
std::vector<Expected> matmul(const Call& call);
std::vector<Expected> sort(const Call& call);
std::vector<Expected> philox(const Call& call);

// Composites.
std::vector<Expected> gelu(const Call& call);
std::vector<Expected> silu(const Call& call);
std::vector<Expected> sigmoid(const Call& call);
std::vector<Expected> pow(const Call& call);
std::vector<Expected> activation_bwd(const Call& call);
std::vector<Expected> unary_function(const Call& call);  // unary
std::vector<Expected> softmax(const Call& call);         // softmax, log_softmax
std::vector<Expected> layer_norm(const Call& call);
std::vector<Expected> rms_norm(const Call& call);
std::vector<Expected> group_norm(const Call& call);
std::vector<Expected> batch_norm(const Call& call);
std::vector<Expected> linear(const Call& call);
std::vector<Expected> gemm(const Call& call);
std::vector<Expected> conv(const Call& call);
std::vector<Expected> conv_transpose(const Call& call);  // conv_transpose, conv_bwd_input
std::vector<Expected> conv_bwd_weight(const Call& call);
std::vector<Expected> max_pool(const Call& call);
std::vector<Expected> avg_pool(const Call& call);
std::vector<Expected> attention(const Call& call);
std::vector<Expected> attention_bwd(const Call& call);
std::vector<Expected> rope(const Call& call);
std::vector<Expected> rotate(const Call& call);
std::vector<Expected> quantize(const Call& call);
std::vector<Expected> dequantize(const Call& call);
std::vector<Expected> quantized_matmul(const Call& call);
std::vector<Expected> embedding(const Call& call);
std::vector<Expected> topk(const Call& call);
std::vector<Expected> cross_entropy(const Call& call);
std::vector<Expected> nll(const Call& call);
std::vector<Expected> nll_bwd(const Call& call);
std::vector<Expected> uniform(const Call& call);
std::vector<Expected> normal(const Call& call);
std::vector<Expected> dropout(const Call& call);
std::vector<Expected> softmax_bwd(const Call& call);
std::vector<Expected> norm_bwd(const Call& call);
std::vector<Expected> adamw(const Call& call);

}  // namespace backplane::conformance::oracle
