// SPDX-License-Identifier: Apache-2.0
// The statistical bounds of class D, over all outputs of a matmul.
#pragma once

#include "cases/numeric/problem.hpp"

namespace backplane::conformance::numeric {

// For data of zero mean and at least 1000 outputs. Let r be e / (u S (2 + .3 root K) + ulp / 2) of
// an output. The root mean square of r is at most 1. The sum of r over T outputs is within root (10
// T), about three standard deviations of the maximum allowed unbiased errors. The latter detects
// rounding in one direction.
std::string check_statistics(const Setup& setup, const std::vector<oracle::Expected>& expected,
                             const std::vector<oracle::Tensor>& got);

}  // namespace backplane::conformance::numeric
