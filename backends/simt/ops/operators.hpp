// SPDX-License-Identifier: Apache-2.0
// The functions that add operators. add_operators() adds all. Each other function adds a family or a part of one.
#pragma once

#include "operator.hpp"

namespace backplane::simt {

void add_operators(Operators& operators);

void add_attention(Operators& operators);
void add_cast(Operators& operators);
void add_conv(Operators& operators);
void add_copy(Operators& operators);
void add_elementwise(Operators& operators);
void add_index(Operators& operators);
void add_loss(Operators& operators);
void add_matmul(Operators& operators);
void add_norm(Operators& operators);
void add_norm_bwd(Operators& operators);
void add_optimizer(Operators& operators);
void add_pool(Operators& operators);
void add_quantize(Operators& operators);
void add_quantize_matmul(Operators& operators);
void add_random(Operators& operators);
void add_reduce(Operators& operators);
void add_rope(Operators& operators);
void add_scan(Operators& operators);
void add_softmax(Operators& operators);
void add_sort(Operators& operators);
void add_topk(Operators& operators);

}  // namespace backplane::simt
