// SPDX-License-Identifier: Apache-2.0
// Oracle of adamw.
#include "composite.hpp"
#include "operators.hpp"

namespace backplane::conformance::oracle {

std::vector<Expected> adamw(const Call& call) {
  const auto attributes = attributes_of<bp_adamw_attributes>(call);
  const auto beta1 = static_cast<long double>(attributes.beta1), beta2 = static_cast<long double>(attributes.beta2);
  const auto epsilon = static_cast<long double>(attributes.epsilon);
  const long double rate = decode(BP_F32, call.scalars[0]);
  const long double correction1 = decode(BP_F32, call.scalars[1]), correction2 = decode(BP_F32, call.scalars[2]);
  const Tensor &parameter = call.outputs[0], &first = call.outputs[1], &second = call.outputs[2];
  // The bound is 8 u times the sum of the terms' magnitudes.
  const long double few = 8 * unit(parameter.dtype);
  std::vector<Expected> expected = outputs_of(call);
  for (int64_t i = 0; i < parameter.count(); ++i) {
    const long double g = value_at(call.inputs[0], i), p = value_at(parameter, i);
    const long double kept = beta1 * value_at(first, i), moved = (1 - beta1) * g;
    const long double m = kept + moved, magnitude = std::fabs(kept) + std::fabs(moved);
    const long double v = beta2 * value_at(second, i) + (1 - beta2) * g * g;
    const long double step = rate / (correction1 * (std::sqrt(v / correction2) + epsilon));
    const long double decay = rate * static_cast<long double>(attributes.weight_decay) * p;
    const auto at = static_cast<size_t>(i);
    expected[0].elements[at] = near(parameter.dtype, p - decay - step * m,
                                    few * (std::fabs(p) + std::fabs(decay) + std::fabs(step) * magnitude));
    expected[1].elements[at] = near(first.dtype, m, few * magnitude);
    expected[2].elements[at] = near(second.dtype, v, few * v);
  }
  return expected;
}

}  // namespace backplane::conformance::oracle
