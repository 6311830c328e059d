// SPDX-License-Identifier: Apache-2.0
// What other operators share with the elementwise ones.
#pragma once

#include "sum.hpp"

namespace backplane::conformance::oracle {

// |got - value| <= k ulps of the output, one for the halves; poles, exact infinities and NaN are exact.
Element within_ulps(uint32_t dtype, long double value, double ulps);

// The number with every fused activation applied to it, and its own bound.
struct Activated {
  long double value;
  long double bound;
};
Activated activate(uint32_t activation, uint32_t dtype, long double x);
// A sum, then an activation.
Element activated(uint32_t activation, uint32_t dtype, const Verdict& verdict);

}  // namespace backplane::conformance::oracle
