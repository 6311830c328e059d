// SPDX-License-Identifier: Apache-2.0
// The operators that the onednn plugin implements itself. All other primitives use the kernels of
// cpu_kernels.
#pragma once

#include <backplane/kit/kernels.hpp>

namespace backplane::onednn {

// Adds all operators of this file to `kernels`. The caller has already added the operators of cpu_kernels, some
// of which this function replaces.
void add_operators(kit::Kernels& kernels);

void add_elementwise(kit::Kernels& kernels);             // unary, binary, compare, select, gelu, silu, sigmoid, pow
void add_elementwise_activation(kit::Kernels& kernels);  // activation_bwd
void add_elementwise_function(kit::Kernels& kernels);    // unary
void add_cast(kit::Kernels& kernels);
void add_copy(kit::Kernels& kernels);   // fill, copy
void add_index(kit::Kernels& kernels);  // gather
void add_index_scatter(kit::Kernels& kernels);
void add_reduce(kit::Kernels& kernels);      // reduce_sum, reduce_max, reduce_min
void add_reduce_arg(kit::Kernels& kernels);  // argmax, argmin
void add_scan(kit::Kernels& kernels);        // cumsum
void add_matmul(kit::Kernels& kernels);
void add_matmul_gemm(kit::Kernels& kernels);    // gemm
void add_matmul_linear(kit::Kernels& kernels);  // linear
void add_softmax(kit::Kernels& kernels);        // softmax, log_softmax
void add_softmax_bwd(kit::Kernels& kernels);
void add_norm(kit::Kernels& kernels);        // layer_norm, rms_norm
void add_norm_group(kit::Kernels& kernels);  // group_norm
void add_norm_batch(kit::Kernels& kernels);  // batch_norm
void add_norm_bwd(kit::Kernels& kernels);
void add_conv(kit::Kernels& kernels);  // conv, conv_transpose, conv_bwd_input, conv_bwd_weight
void add_pool(kit::Kernels& kernels);  // max_pool, avg_pool
void add_attention(kit::Kernels& kernels);
void add_attention_bwd(kit::Kernels& kernels);
void add_rope(kit::Kernels& kernels);
void add_rope_rotate(kit::Kernels& kernels);      // rotate
void add_quantize(kit::Kernels& kernels);         // quantize, dequantize
void add_quantize_matmul(kit::Kernels& kernels);  // quantized_matmul
void add_loss(kit::Kernels& kernels);             // cross_entropy
void add_loss_nll(kit::Kernels& kernels);         // nll, nll_bwd
void add_topk(kit::Kernels& kernels);
void add_random(kit::Kernels& kernels);           // philox, uniform, normal, dropout
void add_optimizer_adamw(kit::Kernels& kernels);  // adamw

}  // namespace backplane::onednn
