// SPDX-License-Identifier: Apache-2.0
// A statistical bound over all outputs whose products have operands rounded to 16 bits. It stays sharp where the hard
// bound has room for such a rounding of every product.
#pragma once

#include "cases/numeric/problem.hpp"

namespace backplane::conformance::numeric {

// The root mean square of errors over their deviations: .4 to .6 with honest rounding, at most 1 on random data.
struct Deviations {
  double root_mean_square = 0;
  int64_t count = 0;
};
Deviations deviations_of(const oracle::Expected& expected, const oracle::Tensor& got);

inline constexpr std::string_view kDeviationsRequirement = "BP-NUM-046";

// Only for random data of zero mean: the root mean square of errors over deviations is at most 1. Rounding weights to
// nearest is off by .85 of its part of the deviation where weights spread evenly, and by 1.15 where all lie just above
// powers of two. Random weights do not. Cutting is off by 1.7 and more of that part; with half an ulp of the result
// beside it the whole stays at .85. Needs 1000 outputs.
std::string check_deviations(const Setup& setup, const std::vector<oracle::Expected>& expected,
                             const std::vector<oracle::Tensor>& got);

}  // namespace backplane::conformance::numeric
