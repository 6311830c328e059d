// SPDX-License-Identifier: Apache-2.0
// Elementwise computations that the oracles of other operators use.
#pragma once

#include "sum.hpp"

namespace backplane::conformance::oracle {

// Returns an Element that accepts an error of at most `ulps` ulps of the output, or 1 ulp for 16-bit floats. Infinities
// (such as poles) and NaN must match exactly.
Element within_ulps(uint32_t dtype, long double value, double ulps);

// The result of an activation, and its error bound.
struct Activated {
  long double value;
  long double bound;
};
Activated activate(uint32_t activation, uint32_t dtype, long double x);
// Returns the expected element of a sum that is followed by an activation.
Element activated(uint32_t activation, uint32_t dtype, const Verdict& verdict);

}  // namespace backplane::conformance::oracle
