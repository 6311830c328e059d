// SPDX-License-Identifier: Apache-2.0
// Defines the order of elements in sort and topk.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "axis.hpp"
#include "number.hpp"

namespace backplane::conformance::oracle {

// Returns the indices along the axis in sorted order, for the outer index `o` and the inner index
// `j`. Ascending and descending orders are stable, NaN is greater than every number, and -0 equals
// +0.
inline std::vector<int64_t> sorted_positions(const Tensor& in, const AxisView& view, int64_t o, int64_t j,
                                             bool descending) {
  std::vector<long double> values(static_cast<size_t>(view.extent));
  for (int64_t i = 0; i < view.extent; ++i) values[static_cast<size_t>(i)] = value_at(in, view.at(o, i, j));
  const auto less = [&](int64_t a, int64_t b) {
    const long double x = values[static_cast<size_t>(a)], y = values[static_cast<size_t>(b)];
    return !std::isnan(x) && (std::isnan(y) || x < y);
  };
  std::vector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return descending ? less(b, a) : less(a, b); });
  return order;
}

}  // namespace backplane::conformance::oracle
