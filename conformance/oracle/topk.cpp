// SPDX-License-Identifier: Apache-2.0
#include "composite.hpp"
#include "operators.hpp"
#include "order.hpp"

namespace backplane::conformance::oracle {

std::vector<Expected> topk(const Call& call) {
  const auto attributes = attributes_of<bp_topk_attributes>(call);
  const Tensor &in = call.inputs[0], &values = call.outputs[0];
  const Tensor* indices = optional(call.outputs, 1);
  const AxisView from(in, attributes.axis), to(values, attributes.axis);
  std::vector<Expected> expected = outputs_of(call);
  to.each([&](int64_t o, int64_t j) {
    const std::vector<int64_t> order = sorted_positions(in, from, o, j, attributes.smallest == 0);
    for (int64_t i = 0; i < to.extent; ++i) {
      const auto at = static_cast<size_t>(to.at(o, i, j));
      const int64_t chosen = order[static_cast<size_t>(i)];
      expected[0].elements[at] = exact_value(in.dtype, load(in, from.at(o, chosen, j)));
      if (indices != nullptr)
        expected[1].elements[at] = exact_bits(indices->dtype, encode_integer(indices->dtype, chosen));
    }
  });
  return expected;
}

}  // namespace backplane::conformance::oracle
