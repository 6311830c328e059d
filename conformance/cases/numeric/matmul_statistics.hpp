// SPDX-License-Identifier: Apache-2.0
// Checks the statistical bounds of accuracy class D over all outputs of a matmul.
#pragma once

#include "cases/numeric/problem.hpp"

namespace backplane::conformance::numeric {

// Checks zero-mean data if there are at least 1000 outputs. Let u be the accumulator's unit roundoff. For each output,
// S is the sum of |a b| over its K products, and r is error / (u S (2 + 0.3 sqrt(K)) + ulp / 2). The root mean square
// of r must be at most 1. The magnitude of the sum of r over T outputs must be at most sqrt(10 T). This second limit is
// about three standard deviations of the largest allowed unbiased errors, and detects rounding in one direction.
// Returns an error text, or "" if the data pass.
std::string check_statistics(const Setup& setup, const std::vector<oracle::Expected>& expected,
                             const std::vector<oracle::Tensor>& got);

}  // namespace backplane::conformance::numeric
