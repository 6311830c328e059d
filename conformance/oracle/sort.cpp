// SPDX-License-Identifier: Apache-2.0
// Oracle of sort. order.hpp defines the order.
#include <algorithm>
#include <numeric>

#include "axis.hpp"
#include "composite.hpp"
#include "number.hpp"
#include "operators.hpp"
#include "order.hpp"

namespace backplane::conformance::oracle {

std::vector<Expected> sort(const Call& call) {
  const Tensor& in = call.inputs[0];
  const Tensor* indices = optional(call.outputs, 1);
  const auto attributes = attributes_of<bp_sort_attributes>(call);
  const AxisView view(in, attributes.axis);
  std::vector<Expected> expected = outputs_of(call);
  view.each([&](int64_t o, int64_t j) {
    const std::vector<int64_t> order = sorted_positions(in, view, o, j, attributes.descending != 0);
    for (int64_t i = 0; i < view.extent; ++i) {
      const auto to = static_cast<size_t>(view.at(o, i, j));
      const int64_t from = order[static_cast<size_t>(i)];
      expected[0].elements[to] = exact_value(in.dtype, load(in, view.at(o, from, j)));
      if (indices != nullptr)
        expected[1].elements[to] = exact_bits(indices->dtype, encode_integer(indices->dtype, from));
    }
  });
  return expected;
}

}  // namespace backplane::conformance::oracle
