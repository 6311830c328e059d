// SPDX-License-Identifier: Apache-2.0
// Compares a device's results with the results that the oracle allows.
#pragma once

#include "oracle.hpp"

namespace backplane::conformance::oracle {

struct Comparison {
  int64_t bad = 0;     // number of wrong elements
  int64_t first = -1;  // flat index of the first wrong element
  // Maximum ratio of an error to its bound; negative if no element has a bound.
  double worst_ratio = -1;
};

// `flushes` is true if the device declared BP_CAP_FTZ_F32 and the operator is arithmetic.
Comparison compare(const Expected& expected, const Tensor& got, bool flushes);

// Returns the coordinates of a flat index, for example "(1,2)".
std::string index_text(const std::vector<int64_t>& shape, int64_t flat);
// Describes a wrong element, for example "expected 3, rounded 3 (0x..), within 1e-07, got 4 (0x..), which
// is off by 1".
std::string difference_text(const Expected& expected, const Tensor& got, int64_t index);

}  // namespace backplane::conformance::oracle
