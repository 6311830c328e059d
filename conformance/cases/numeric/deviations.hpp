// SPDX-License-Identifier: Apache-2.0
// A statistical bound for outputs whose products have operands rounded to 16 bits. This bound is
// tighter than the hard bound, which allows the maximum rounding error in every product.
#pragma once

#include "cases/numeric/problem.hpp"

namespace backplane::conformance::numeric {

// The root mean square of error / deviation. On random data, correct rounding gives 0.4 to 0.6, and
// the limit is 1.
struct Deviations {
  double root_mean_square = 0;
  int64_t count = 0;
};
Deviations deviations_of(const oracle::Expected& expected, const oracle::Tensor& got);

inline constexpr std::string_view kDeviationsRequirement = "BP-NUM-046";

// Requires that the root mean square of error / deviation is at most 1. The check needs random data
// of zero mean and at least 1000 outputs. Rounding weights to nearest contributes 0.85 of the
// weights' part of the deviation if the weights are evenly distributed. It contributes 1.15 if all
// weights are just above powers of two, but random weights are not. Truncation contributes at least
// 1.7 of the weights' part. Together with half an ulp of the result, rounding to nearest gives 0.85
// of the whole deviation. Returns the error, or "".
std::string check_deviations(const Setup& setup, const std::vector<oracle::Expected>& expected,
                             const std::vector<oracle::Tensor>& got);

}  // namespace backplane::conformance::numeric
