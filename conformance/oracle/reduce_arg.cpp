// SPDX-License-Identifier: Apache-2.0
// Oracles of argmax and argmin.
#include <cmath>

#include "axis.hpp"
#include "number.hpp"
#include "operators.hpp"

namespace backplane::conformance::oracle {

std::vector<Expected> arg(const Call& call) {
  const Tensor &in = call.inputs[0], &out = call.outputs[0];
  const long double sign = call.op == BP_OP_ARGMAX ? 1 : -1;
  const AxisView view(in, attributes_of<bp_axis_attributes>(call).axis);
  Expected expected;
  expected.elements.reserve(static_cast<size_t>(out.count()));
  view.each([&](int64_t o, int64_t j) {
    int64_t found = 0;
    long double best = value_at(in, view.at(o, 0, j));
    for (int64_t i = 1; i < view.extent && !std::isnan(best); ++i) {
      const long double value = value_at(in, view.at(o, i, j));
      if (!std::isnan(value) && sign * value <= sign * best) continue;
      best = value;
      found = i;
    }
    expected.elements.push_back(exact_bits(out.dtype, encode_integer(out.dtype, found)));
  });
  return {expected};
}

}  // namespace backplane::conformance::oracle
