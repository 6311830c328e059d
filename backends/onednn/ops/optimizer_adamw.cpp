// SPDX-License-Identifier: Apache-2.0
// The operator adamw, in one pass over memory.
#include "simd/optimizer_adamw.hpp"

#include <backplane/kit/plan.hpp>

#include "ops/operators.hpp"
#include "runtime/threads.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

constexpr int64_t kAdamwGrain = int64_t{1} << 16;  // number of elements that justify waking a thread

void run_adamw(const Call& call) {
  const auto& attributes = call.attributes<bp_adamw_attributes>();
  const auto complement = [](float beta) { return static_cast<float>(1 - static_cast<double>(beta)); };
  const auto rate = call.scalar<float>(0), correction1 = call.scalar<float>(1);
  const AdamwStep step{.keep1 = attributes.beta1,
                       .add1 = complement(attributes.beta1),
                       .keep2 = attributes.beta2,
                       .add2 = complement(attributes.beta2),
                       .correction2 = call.scalar<float>(2),
                       .epsilon = attributes.epsilon,
                       .rate = rate / correction1,
                       .decay = rate * attributes.weight_decay};
  const View& gradient = call.in(0);
  const auto kernel = call.prepared<AdamwKernel>();
  const int64_t elements = gradient.elements();
  parallel(elements, kAdamwGrain, [&](int part, int parts) noexcept {
    const Range range = range_of(elements, part, parts, 64);
    const auto at = [&](const View& view) {
      return view.data + range.begin * static_cast<int64_t>(dtype_bytes(view.dtype));
    };
    if (range.begin == range.end) return;
    kernel(step, at(gradient), at(call.out(0)), at(call.out(1)), at(call.out(2)), range.end - range.begin);
  });
}

Status prepare_adamw(const CheckedDesc& checked, Prepared& prepared) {
  const bp_op_desc& desc = checked.desc;
  prepared.any_size = true;
  prepared.state =
      std::make_shared<AdamwKernel>(adamw_kernel(desc.inputs[0].dtype, desc.outputs[0].dtype, desc.outputs[1].dtype));
  return {};
}

}  // namespace

void add_optimizer_adamw(Kernels& kernels) {
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    if (adamw_kernel(dtype, dtype, dtype) == nullptr) continue;
    kernels.add(BP_OP_ADAMW, dtype,
                {.run = run_adamw,
                 .dense = true,
                 .prepare = prepare_adamw,
                 .mixed = rules::kMixedParameters | rules::kMixedState});
  }
}

}  // namespace backplane::onednn
