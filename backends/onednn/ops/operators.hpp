// SPDX-License-Identifier: Apache-2.0
// The operator groups of the onednn plugin. Each replaces plain kernels of the table where it has faster ones.
#pragma once

#include <backplane/kit/kernels.hpp>

namespace backplane::onednn {

void add_rows(kit::Kernels& kernels);       // elementwise operators and activations
void add_reduce(kit::Kernels& kernels);     // sums and extrema
void add_lanes(kit::Kernels& kernels);      // softmax, log_softmax, layer_norm, rms_norm, group_norm
void add_gradients(kit::Kernels& kernels);  // softmax_bwd, norm_bwd
void add_conv(kit::Kernels& kernels);       // conv, conv_transpose, their gradients
void add_pool(kit::Kernels& kernels);       // max_pool, avg_pool
void add_rope(kit::Kernels& kernels);
void add_adamw(kit::Kernels& kernels);
void add_linear(kit::Kernels& kernels);
void add_quantized(kit::Kernels& kernels);  // quantized_matmul
void add_attention(kit::Kernels& kernels);
void add_matmul(kit::Kernels& kernels);

}  // namespace backplane::onednn
