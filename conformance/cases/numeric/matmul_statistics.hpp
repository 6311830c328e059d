// SPDX-License-Identifier: Apache-2.0
// Checks the statistical bounds of accuracy class D over all outputs of a matmul.
#pragma once

#include "cases/numeric/problem.hpp"

namespace backplane::conformance::numeric {

// Checks data of zero mean with at least 1000 outputs. For an output with error e, let r be e / (u
// S (2 + 0.3 sqrt(K)) + ulp / 2). The root mean square of r must be at most 1. The magnitude of the
// sum of r over T outputs must be at most sqrt(10 T). This limit is about three standard deviations
// of the largest allowed unbiased errors. It detects rounding in one direction. Returns the error,
// or "".
std::string check_statistics(const Setup& setup, const std::vector<oracle::Expected>& expected,
                             const std::vector<oracle::Tensor>& got);

}  // namespace backplane::conformance::numeric
