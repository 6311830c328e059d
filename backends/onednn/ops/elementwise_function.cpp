// SPDX-License-Identifier: Apache-2.0
// The operator unary. Core decomposes the functions that have no vector kernel.
#include "simd/elementwise_function.hpp"

#include "ops/operators.hpp"
#include "ops/vector_loop.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

// The function is an attribute, so it is known when the plan is created, and the plan contains its kernel.
Status prepare_unary(const CheckedDesc& checked, Prepared& prepared) {
  const uint32_t function = checked.attributes.as<bp_unary_attributes>().function;
  const VectorKernel kernel = function_kernel(function, checked.dtypes.first);
  if (kernel == nullptr)
    return unsupported("unary: the function ", function, " is not supported; let core decompose it");
  prepared.any_size = true;
  prepared.state = vector_plan(kernel, kCostlyGrain);
  return {};
}

}  // namespace

void add_elementwise_function(Kernels& kernels) {
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    if (function_kernel(BP_UNARY_EXPM1, dtype) == nullptr) continue;
    kernels.add(BP_OP_UNARY, dtype, {.run = run_vectorised<2>, .prepare = prepare_unary});
  }
}

}  // namespace backplane::onednn
