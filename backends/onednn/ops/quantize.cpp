// SPDX-License-Identifier: Apache-2.0
// The operators quantize and dequantize with 8 bits. Core decomposes both operators with 4 bits.
#include "simd/quantize.hpp"

#include <backplane/kit/plan.hpp>

#include "ops/operands.hpp"
#include "ops/operators.hpp"
#include "ops/vector_loop.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

// Returns a view of the scale or zero point with the shape of `data`. Dimensions of extent 1 get stride 0.
View broadcast_parameter(const View& parameter, const View& data) {
  View out = parameter;
  out.rank = data.rank;
  for (uint32_t d = 0; d < data.rank; ++d) {
    const bool one = parameter.rank != data.rank || parameter.shape[d] == 1;
    out.shape[d] = data.shape[d];
    out.strides[d] = one ? 0 : parameter.strides[d];
  }
  return out;
}

void run_quantize(const Call& call) {
  const auto& plan = call.prepared<VectorPlan>();
  const View &out = call.out(), &data = call.in(0), scale = broadcast_parameter(call.in(1), data);
  const View* const zero = optional_operand(call.inputs, 2);
  if (zero == nullptr) return run_views<3>(plan, {out, data, scale});
  run_views<4>(plan, {out, data, scale, broadcast_parameter(*zero, data)});
}

Status prepare_quantize(const CheckedDesc& checked, Prepared& prepared) {
  const bp_op_desc& desc = checked.desc;
  const bool quantizes = desc.op == BP_OP_QUANTIZE;
  if (const uint32_t bits = checked.attributes.as<bp_quantize_attributes>().bits; bits != 8) {
    return unsupported(checked.op->name, ": bits = ", bits, " is not supported, 8 is; let core decompose it");
  }
  const bool has_zero = desc.input_count > 2 && desc.inputs[2].dtype != 0;
  const uint32_t from = desc.inputs[0].dtype, to = desc.outputs[0].dtype, scale = desc.inputs[1].dtype;
  prepared.any_size = true;
  prepared.state =
      vector_plan(quantizes ? quantize_kernel(from, scale, to, has_zero) : dequantize_kernel(to, scale, from, has_zero),
                  kCheapGrain);
  if (prepared.state == nullptr)
    return unsupported(checked.op->name, ": no kernel for these dtypes; let core decompose it");
  return {};
}

}  // namespace

void add_quantize(Kernels& kernels) {
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    if (quantize_kernel(dtype, dtype, BP_U8, false) == nullptr) continue;
    const KernelSpec spec{.run = run_quantize, .prepare = prepare_quantize, .mixed = rules::kMixedParameters};
    kernels.add(BP_OP_QUANTIZE, dtype, spec);
    for (const uint32_t steps : {BP_I8, BP_U8}) kernels.add(BP_OP_DEQUANTIZE, steps, dtype, spec);
  }
}

}  // namespace backplane::onednn
