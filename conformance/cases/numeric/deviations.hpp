// SPDX-License-Identifier: Apache-2.0
// A statistical error bound for sums of products whose operands are rounded to 16 bits. This bound
// is tighter than the hard bound, which allows the maximum rounding error in every product.
#pragma once

#include "cases/numeric/problem.hpp"

namespace backplane::conformance::numeric {

// The root mean square of error / Expected::deviations over the finite results. With rounding to nearest, random data
// give values from 0.42 to 0.72. The limit is 1.
struct Deviations {
  double root_mean_square = 0;
  int64_t count = 0;
};
Deviations deviations_of(const oracle::Expected& expected, const oracle::Tensor& got);

inline constexpr std::string_view kDeviationsRequirement = "BP-NUM-046";

// Returns an error text if the root mean square of error / deviation exceeds 1. Returns "" otherwise, and if there are
// fewer than 1000 finite results. The data must be random with zero mean.
//
// A deviation is the sum of two parts: the error of operands rounded to 16 bits, and half an ulp of the result. For
// uniformly distributed operands, rounding to nearest causes 0.85 times the first part, and truncation causes 1.7 times
// the first part. If all operands were just above powers of two, rounding to nearest would cause 1.15 times the first
// part.
std::string check_deviations(const Setup& setup, const std::vector<oracle::Expected>& expected,
                             const std::vector<oracle::Tensor>& got);

}  // namespace backplane::conformance::numeric
