// SPDX-License-Identifier: Apache-2.0
#include "cases/numeric/cases.hpp"

#include "cases/catalogue.hpp"
#include "cases/numeric/composite.hpp"

namespace backplane::conformance {

void add_numeric_cases(Catalogue& catalogue) {
  using namespace numeric;
  add_fill(catalogue);
  add_copy(catalogue);
  add_cast(catalogue);
  add_iota(catalogue);
  add_elementwise(catalogue);
  add_index(catalogue);
  add_reduce(catalogue);
  for (uint32_t dtype = 1; dtype < BP_DTYPE_LIMIT; ++dtype) {
    add_reduce_arg(catalogue, dtype);
    add_scan(catalogue, dtype);
    add_sort(catalogue, dtype);
  }
  add_matmul(catalogue);
  add_random(catalogue);
  add_elementwise_activation(catalogue);
  add_elementwise_function(catalogue);
  for (const uint32_t dtype : kFloatDtypes) {
    add_softmax(catalogue, dtype);
    add_loss(catalogue, dtype);
  }
  add_norm(catalogue);
  for (const uint32_t dtype : kFloatDtypes) {
    add_linear(catalogue, dtype);
    add_gemm(catalogue, dtype);
    add_conv(catalogue, dtype);
    add_pool(catalogue, dtype);
  }
  for (const uint32_t dtype : kFloatDtypes) {
    add_attention(catalogue, dtype);
    add_rope(catalogue, dtype);
  }
  add_quantize(catalogue);
  for (const uint32_t dtype : kFloatDtypes) {
    add_embedding(catalogue, dtype);
    add_optimizer(catalogue, dtype);
    add_random_numbers(catalogue, dtype);
  }
  add_topk(catalogue);
  add_cast_ties(catalogue);
  add_long(catalogue);
  add_large(catalogue);
  add_far(catalogue);
}

}  // namespace backplane::conformance
