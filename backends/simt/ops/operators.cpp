// SPDX-License-Identifier: Apache-2.0
#include "ops/operators.hpp"

namespace backplane::simt {

void add_operators(Operators& operators) {
  add_copy(operators);
  add_cast(operators);
  add_index(operators);
  add_elementwise(operators);
  add_reduce(operators);
  add_scan(operators);
  add_matmul(operators);
  add_quantize_matmul(operators);
  add_sort(operators);
  add_conv(operators);
  add_random(operators);
  add_optimizer(operators);
  add_rope(operators);
  add_quantize(operators);
  add_pool(operators);
  add_topk(operators);
  add_softmax(operators);
  add_norm(operators);
  add_norm_bwd(operators);
  add_loss(operators);
  add_attention(operators);
}

}  // namespace backplane::simt
