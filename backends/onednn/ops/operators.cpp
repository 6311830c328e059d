// SPDX-License-Identifier: Apache-2.0
#include "ops/operators.hpp"

namespace backplane::onednn {

void add_operators(kit::Kernels& kernels) {
  for (const auto add : {add_elementwise,
                         add_elementwise_activation,
                         add_elementwise_function,
                         add_cast,
                         add_copy,
                         add_index,
                         add_index_scatter,
                         add_reduce,
                         add_reduce_arg,
                         add_scan,
                         add_matmul,
                         add_matmul_gemm,
                         add_matmul_linear,
                         add_softmax,
                         add_softmax_bwd,
                         add_norm,
                         add_norm_batch,
                         add_norm_bwd,
                         add_norm_group,
                         add_conv,
                         add_pool,
                         add_attention,
                         add_attention_bwd,
                         add_rope,
                         add_rope_rotate,
                         add_quantize,
                         add_quantize_matmul,
                         add_loss,
                         add_loss_nll,
                         add_topk,
                         add_random,
                         add_optimizer_adamw}) {
    add(kernels);
  }
}

}  // namespace backplane::onednn
