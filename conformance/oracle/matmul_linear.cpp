// SPDX-License-Identifier: Apache-2.0
#include "composite.hpp"
#include "dot.hpp"
#include "operators.hpp"

namespace backplane::conformance::oracle {

std::vector<Expected> linear(const Call& call) {
  const auto attributes = attributes_of<bp_linear_attributes>(call);
  const Tensor &x = call.inputs[0], &w = call.inputs[1], &out = call.outputs[0];
  const Tensor* bias = optional(call.inputs, 2);
  const int64_t cols = w.shape[0], depth = w.shape[1], rows = cols == 0 ? 0 : out.count() / cols;
  std::vector<Expected> expected = outputs_of(call);
  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t n = 0; n < cols; ++n) {
      Sum sum;
      for (int64_t k = 0; k < depth; ++k) sum.add_product(value_at(x, m * depth + k), value_at(w, n * depth + k));
      if (bias != nullptr) sum.add(value_at(*bias, n));
      expected[0].elements[static_cast<size_t>(m * cols + n)] =
          finish_dot(sum, sum.count(), out.dtype, attributes.precision, attributes.activation);
    }
  }
  return expected;
}

}  // namespace backplane::conformance::oracle
