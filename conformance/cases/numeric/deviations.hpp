// SPDX-License-Identifier: Apache-2.0
// A statistical bound over all outputs whose products have operands rounded to 16 bits. It is
// sharper than the hard bound, which allows the greatest rounding of every product.
#pragma once

#include "cases/numeric/problem.hpp"

namespace backplane::conformance::numeric {

// The root mean square of error over deviation: .4 to .6 with honest rounding, at most 1 on random
// data.
struct Deviations {
  double root_mean_square = 0;
  int64_t count = 0;
};
Deviations deviations_of(const oracle::Expected& expected, const oracle::Tensor& got);

inline constexpr std::string_view kDeviationsRequirement = "BP-NUM-046";

// For random data of zero mean and at least 1000 outputs: the root mean square of error over
// deviation is at most 1. Rounding weights to nearest gives .85 of its part of the deviation if the
// weights are evenly spread, and 1.15 if all are just above powers of two, which random weights are
// not. Truncation gives at least 1.7 of that part. With half an ulp of the result, honest rounding
// stays at .85 of the whole.
std::string check_deviations(const Setup& setup, const std::vector<oracle::Expected>& expected,
                             const std::vector<oracle::Tensor>& got);

}  // namespace backplane::conformance::numeric
