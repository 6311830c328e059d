// SPDX-License-Identifier: Apache-2.0
// Unary and binary operators, compare, select, gelu, silu, sigmoid and pow.
#include "simd/elementwise.hpp"

#include <backplane/kit/types.hpp>

#include "ops/operators.hpp"
#include "ops/vector_loop.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

// The approximation is an attribute, so it is known when the plan is created, and the plan contains its kernel.
Status prepare_gelu(const CheckedDesc& checked, Prepared& prepared) {
  const bool tanh_form = checked.attributes.as<bp_gelu_attributes>().approximation == BP_GELU_TANH;
  const uint32_t dtype = checked.dtypes.first;
  prepared.any_size = true;
  prepared.state = vector_plan(
      activation_kernel(tanh_form ? BP_ACTIVATION_GELU_TANH : BP_ACTIVATION_GELU_ERF, dtype, dtype), kCostlyGrain);
  return {};
}

// The predicate is an attribute, so it is known when the plan is created, and the plan contains its kernel.
Status prepare_compare(const CheckedDesc& checked, Prepared& prepared) {
  const uint32_t predicate = checked.attributes.as<bp_compare_attributes>().predicate;
  prepared.any_size = true;
  prepared.state = vector_plan(compare_kernel(predicate, checked.dtypes.first), kCheapGrain);
  if (prepared.state != nullptr) prepared.run = run_vectorised<3>;
  return {};
}

}  // namespace

void add_elementwise(Kernels& kernels) {
  for_types(All{}, [&]<class T>() {
    constexpr KernelDtypes kDtypes{kDtypeOf<T>, kDtypeOf<T>};
    for (uint32_t op = BP_OP_NEG; op <= BP_OP_BITNOT; ++op) {
      const bool costly = op >= BP_OP_EXP && op <= BP_OP_ERF;
      replace_kernel(kernels, op, kDtypes, run_vectorised<2>, unary_kernel(op, kDtypes.first),
                     costly ? kCostlyGrain : kCheapGrain);
    }
    for (uint32_t op = BP_OP_ADD; op <= BP_OP_SHR; ++op) {
      replace_kernel(kernels, op, kDtypes, run_vectorised<3>, binary_kernel(op, kDtypes.first), kCheapGrain);
    }
    replace_kernel(kernels, BP_OP_SELECT, kDtypes, run_vectorised<4>, select_kernel(sizeof(T)), kCheapGrain);
    KernelSpec compare = *kernels.find(BP_OP_COMPARE, kDtypes);
    compare.prepare = prepare_compare;
    kernels.add(BP_OP_COMPARE, kDtypes.first, kDtypes.second, compare);
  });
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    const auto add = [&](uint32_t op, uint32_t activation) {
      kernels.add(
          op, dtype,
          {.run = run_vectorised<2>, .state = vector_plan(activation_kernel(activation, dtype, dtype), kCostlyGrain)});
    };
    if (activation_kernel(BP_ACTIVATION_SILU, dtype, dtype) == nullptr) continue;
    kernels.add(BP_OP_GELU, dtype, {.run = run_vectorised<2>, .prepare = prepare_gelu});
    add(BP_OP_SILU, BP_ACTIVATION_SILU);
    add(BP_OP_SIGMOID, BP_ACTIVATION_SIGMOID);
    kernels.add(BP_OP_POW, dtype, {.run = run_vectorised<3>, .state = vector_plan(pow_kernel(dtype), kCostlyGrain)});
  }
}

}  // namespace backplane::onednn
