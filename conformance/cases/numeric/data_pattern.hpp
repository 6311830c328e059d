// SPDX-License-Identifier: Apache-2.0
// The patterns of data that operands are filled with.
#pragma once

#include <cstdint>
#include <string_view>

namespace backplane::conformance::numeric {

enum class DataPattern : int32_t {
  // Elementwise operators.
  tags,          // small integers that differ between neighbours: a wrong index shows, and sums are exact
  uniform,       // floats in [-1, 1), any integer
  bits,          // any bits
  special,       // zeros, subnormals, infinities, NaN, extremes, 1 and its neighbours
  bounds,        // near the ends of the range: large exponents, small onto large
  cancel_pairs,  // the second input is near the first or its negative
  zeros,         // zero and non-zero mixed, of both signs
  halfway,       // between neighbours of the output's dtype
  exhaustive,    // every bit pattern, in order
  windows,       // dense runs of neighbours around thresholds
  family,        // the operator's family has its own data

  // Operators that sum, compare or order many elements: exact data first, then what breaks careless
  // arithmetic.
  integers,   // small integers: every sum is exact. Integer dtypes: any bits
  zero_mean,  // in [-1, 1)
  spikes,     // the same, every 61st times 1e4
  positive,   // in [0, 1)
  tenth,      // 0.1 everywhere: rounding errors add up
  cancel,     // large numbers that cancel each other almost entirely
  partial,    // the first half sums to a large number, the second half cancels it: shows a narrow partial sum
  one_inf,    // zero mean, with one infinity
  two_infs,   // zero mean, with one infinity of each sign
  one_nan,    // zero mean, with one NaN
  overflow,   // near the greatest number
  negative,   // all below 0
  few,        // 0 to 3: many are equal
  equal,      // all the same
  count,
};
// The pattern's word in case ids.
std::string_view name_of(DataPattern pattern);
// The requirement that a sum of such data tests.
std::string_view requirement_of_sum(DataPattern pattern);
constexpr int32_t number_of(DataPattern pattern) { return static_cast<int32_t>(pattern); }

}  // namespace backplane::conformance::numeric
