// SPDX-License-Identifier: Apache-2.0
// The statistical bounds of class D, over all outputs of a matmul.
#pragma once

#include "cases/numeric/problem.hpp"

namespace backplane::conformance::numeric {

// For data of zero mean and at least 1000 outputs: the root mean square of e / (u S (2 + .3 root K)
// + ulp / 2) is at most 1. The sum of these ratios over T outputs is within root (10 T), about
// three standard deviations of the greatest allowed unbiased errors, which detects rounding in one
// direction.
std::string check_statistics(const Setup& setup, const std::vector<oracle::Expected>& expected,
                             const std::vector<oracle::Tensor>& got);

}  // namespace backplane::conformance::numeric
