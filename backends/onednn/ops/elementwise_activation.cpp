// SPDX-License-Identifier: Apache-2.0
// The operator activation_bwd.
#include "simd/elementwise_activation.hpp"

#include "ops/operators.hpp"
#include "ops/vector_loop.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

// The activation is an attribute, so it is known when the plan is created, and the plan contains its kernel.
Status prepare_activation_bwd(const CheckedDesc& checked, Prepared& prepared) {
  const uint32_t activation = checked.attributes.as<bp_activation_bwd_attributes>().activation;
  const VectorKernel kernel = activation_bwd_kernel(activation, checked.dtypes.first);
  if (kernel == nullptr) {
    return unsupported("activation_bwd: the activation ", activation, " is not supported; let core decompose it");
  }
  const bool costly = activation >= BP_ACTIVATION_GELU_ERF && activation <= BP_ACTIVATION_SILU;
  prepared.any_size = true;
  prepared.state = vector_plan(kernel, costly ? kCostlyGrain : kCheapGrain);
  return {};
}

}  // namespace

void add_elementwise_activation(Kernels& kernels) {
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    if (activation_bwd_kernel(BP_ACTIVATION_RELU, dtype) == nullptr) continue;
    kernels.add(BP_OP_ACTIVATION_BWD, dtype, {.run = run_vectorised<3>, .prepare = prepare_activation_bwd});
  }
}

}  // namespace backplane::onednn
