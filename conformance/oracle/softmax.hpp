// SPDX-License-Identifier: Apache-2.0
// Computes one row of softmax with its tolerances. The oracles of attention and cross_entropy also
// use softmax_row.
#pragma once

#include <vector>

#include "composite.hpp"

namespace backplane::conformance::oracle {

struct SoftmaxRow {
  long double greatest = -std::numeric_limits<long double>::infinity();
  long double log_sum = 0;  // logarithm of the sum of e^x; -inf if the whole row is -inf
  bool nan = false;         // the row contains a NaN or +inf, so every element is NaN
  std::vector<long double> y{};
  std::vector<long double> tolerance{};  // allowed error of each element of y
  std::vector<long double> log_tolerance{};
};
SoftmaxRow softmax_row(const std::vector<long double>& x, uint32_t dtype);

}  // namespace backplane::conformance::oracle
