// SPDX-License-Identifier: Apache-2.0
// Oracle of gemm.
#include "composite.hpp"
#include "dot.hpp"
#include "operators.hpp"

namespace backplane::conformance::oracle {

std::vector<Expected> gemm(const Call& call) {
  const Tensor &a = call.inputs[0], &b = call.inputs[1], *c = optional(call.inputs, 2);
  const long double alpha = decode(BP_F32, call.scalars[0]), beta = decode(BP_F32, call.scalars[1]);
  const int64_t depth = a.shape.back(), rows = a.shape[a.shape.size() - 2], cols = b.shape.back();
  // If `a` is f32, a 16-bit `b` is widened to f32.
  const Accumulator accumulator = accumulator_for(a.dtype, attributes_of<bp_matmul_attributes>(call).precision);
  const long double u = unit(a.dtype), tiny = 2 * least_normal(computed_in(a.dtype));
  std::vector<Expected> expected = outputs_of(call);
  for (int64_t i = 0; i < call.outputs[0].count(); ++i) {
    const int64_t row = i / cols, matrix = row / std::max<int64_t>(rows, 1), col = i % cols;
    Sum sum;
    for (int64_t k = 0; k < depth; ++k)
      sum.add_product(value_at(a, row * depth + k), value_at(b, (matrix * depth + k) * cols + col));
    const Verdict product = weigh(sum.total(), accumulator, dot_factor(depth));
    const long double scaled = alpha * product.value;
    const long double added = c == nullptr || beta == 0 ? 0 : beta * value_at(*c, i);
    const uint32_t dtype = call.outputs[0].dtype;
    Element& element = expected[0].elements[static_cast<size_t>(i)];
    if (product.criterion == Criterion::any) {
      element = anything(dtype, scaled + added);
    } else {
      // The bound covers the error of the product, the rounding of each term, and the rounding of the terms' sum.
      const long double off = std::isfinite(product.value) ? std::fabs(alpha) * product.lost : 0;
      element = near(dtype, scaled + added, off + 4 * u * (std::fabs(scaled) + std::fabs(added)) + tiny);
    }
  }
  return expected;
}

}  // namespace backplane::conformance::oracle
