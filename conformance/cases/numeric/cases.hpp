// SPDX-License-Identifier: Apache-2.0
// Declares the functions that add the numeric cases. Each function adds the cases for one family of
// operators or one kind of operand. A comment after a function lists its operators if the name does not.
#pragma once

#include "harness/case.hpp"

namespace backplane::conformance::numeric {

void add_fill(Catalogue& catalogue);
void add_copy(Catalogue& catalogue);
void add_cast(Catalogue& catalogue);
void add_iota(Catalogue& catalogue);
void add_elementwise(Catalogue& catalogue);  // unary, binary, compare, select
void add_index(Catalogue& catalogue);        // gather, scatter
void add_reduce(Catalogue& catalogue);       // reduce_sum, reduce_prod, reduce_max, reduce_min
void add_reduce_arg(Catalogue& catalogue, uint32_t dtype);
void add_scan(Catalogue& catalogue, uint32_t dtype);
void add_sort(Catalogue& catalogue, uint32_t dtype);
void add_matmul(Catalogue& catalogue);
void add_random(Catalogue& catalogue);
void add_random_numbers(Catalogue& catalogue, uint32_t dtype);  // uniform, normal, dropout
void add_elementwise_activation(Catalogue& catalogue);          // gelu, silu, sigmoid, pow, activation_bwd
void add_elementwise_function(Catalogue& catalogue);            // unary
void add_softmax(Catalogue& catalogue, uint32_t dtype);         // softmax, log_softmax, softmax_bwd
void add_loss(Catalogue& catalogue, uint32_t dtype);
void add_norm(Catalogue& catalogue);  // layer_norm, rms_norm, group_norm, batch_norm, norm_bwd
void add_linear(Catalogue& catalogue, uint32_t dtype);
void add_gemm(Catalogue& catalogue, uint32_t dtype);
void add_conv(Catalogue& catalogue, uint32_t dtype);  // conv, conv_transpose, conv_bwd_input, conv_bwd_weight
void add_pool(Catalogue& catalogue, uint32_t dtype);
void add_attention(Catalogue& catalogue, uint32_t dtype);  // attention, attention_bwd
void add_rope(Catalogue& catalogue, uint32_t dtype);       // rope, rotate
void add_quantize(Catalogue& catalogue);                   // quantize, dequantize, quantized_matmul
void add_embedding(Catalogue& catalogue, uint32_t dtype);
void add_optimizer(Catalogue& catalogue, uint32_t dtype);
void add_topk(Catalogue& catalogue);

void add_cast_ties(Catalogue& catalogue);  // casts of values near ties
void add_long(Catalogue& catalogue);       // element positions above 2^24 or 2^31
void add_large(Catalogue& catalogue);      // views whose elements are far apart
// Test cases for every primitive with strides or offsets that exceed 31 or 32 bits.
void add_far(Catalogue& catalogue);

}  // namespace backplane::conformance::numeric
