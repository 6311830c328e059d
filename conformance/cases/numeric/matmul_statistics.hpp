// SPDX-License-Identifier: Apache-2.0
// What all outputs of a matmul together have to keep: class D's statistical bounds.
#pragma once

#include "cases/numeric/problem.hpp"

namespace backplane::conformance::numeric {

// For data of zero mean: the root mean square of e / (u S (2 + .3 root K) + ulp / 2) is at most 1, and their sum over T outputs
// within root (10 T), about three deviations of errors as large as allowed and of either sign alike: rounding in one direction
// shows. Needs 1000 outputs.
std::string check_statistics(const Setup& setup, const std::vector<oracle::Expected>& expected,
                             const std::vector<oracle::Tensor>& got);

}  // namespace backplane::conformance::numeric
