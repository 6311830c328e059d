// SPDX-License-Identifier: Apache-2.0
// Patterns of the data in operands.
#pragma once

#include <cstdint>
#include <string_view>

namespace backplane::conformance::numeric {

enum class DataPattern : int32_t {
  // For elementwise operators.
  tags,     // small integers, different for adjacent elements: a wrong index shows, and sums are exact
  uniform,  // floats in [-1, 1), any integer
  bits,     // any bits
  special,  // zeros, subnormals, infinities, NaN, extremes, 1 and the numbers next to it
  // near the ends of the range: large exponents, and small numbers together with large ones
  bounds,
  cancel_pairs,  // the second input is near the first or its negative
  zeros,         // zeros and other numbers, of both signs
  halfway,       // midway between adjacent numbers of the output's dtype
  exhaustive,    // every bit pattern, in order
  windows,       // dense runs of adjacent numbers around thresholds
  family,        // defined by the operator's family

  // For operators that sum, compare or order many elements: first exact data, then data that expose
  // careless arithmetic.
  integers,   // small integers, so every sum is exact; for integer dtypes, any bits
  zero_mean,  // in [-1, 1)
  spikes,     // like zero_mean, but every 61st number is multiplied by 1e4
  positive,   // in [0, 1)
  tenth,      // 0.1 everywhere: rounding errors add up
  cancel,     // large numbers that cancel each other almost entirely
  // the first half sums to a large number, which the second half cancels: detects a narrow partial
  // sum
  partial,
  one_inf,   // zero mean, with one infinity
  two_infs,  // zero mean, with one infinity of each sign
  one_nan,   // zero mean, with one NaN
  overflow,  // near the maximum number
  negative,  // all below 0
  few,       // 0 to 3: many are equal
  equal,     // all the same
  count,
};
// The pattern's name in case ids.
std::string_view name_of(DataPattern pattern);
// The id of the requirement that a case tests by summing data of this pattern.
std::string_view requirement_of_sum(DataPattern pattern);
constexpr int32_t number_of(DataPattern pattern) { return static_cast<int32_t>(pattern); }

}  // namespace backplane::conformance::numeric
