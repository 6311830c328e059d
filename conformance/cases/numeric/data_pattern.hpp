// SPDX-License-Identifier: Apache-2.0
// Patterns of operand data.
#pragma once

#include <cstdint>
#include <string_view>

namespace backplane::conformance::numeric {

enum class DataPattern : int32_t {
  // ---- Patterns for elementwise operators
  tags,     // small integers that differ between nearby elements; see tag_of in fill_data.cpp
  uniform,  // floats in [-1, 1), or any integers
  bits,     // random bits
  special,  // zeros, subnormals, infinities, NaN, extremes, 1 and the numbers next to 1
  // Numbers near the ends of the range, and small numbers together with large numbers.
  bounds,
  cancel_pairs,  // the second input is near the first input or its negative
  zeros,         // zeros of both signs, and other numbers
  halfway,       // numbers midway between adjacent numbers of the output's dtype
  exhaustive,    // every bit pattern, in order
  windows,       // dense runs of adjacent numbers around thresholds
  family,        // data that the operator's family defines

  // ---- Patterns for operators that sum, compare or order many elements
  integers,   // small integers with exact sums; for integer dtypes, any bits
  zero_mean,  // random numbers in [-1, 1)
  spikes,     // zero_mean, in which every 61st number is multiplied by 1e4
  positive,   // random numbers in [0, 1)
  tenth,      // 0.1 in every element, so that rounding errors accumulate
  cancel,     // large numbers that cancel each other almost entirely
  // The first half sums to a large number, and the second half cancels this number. The pattern
  // detects a partial sum in a narrow dtype.
  partial,
  one_inf,   // zero_mean with one infinity
  two_infs,  // zero_mean with one infinity of each sign
  one_nan,   // zero_mean with one NaN
  overflow,  // numbers near the maximum finite number
  negative,  // numbers below 0
  few,       // numbers from 0 to 3, many of which are equal
  equal,     // one number in all elements
  count,
};
// Returns the name of the pattern in case ids.
std::string_view name_of(DataPattern pattern);
// Returns the id of the requirement that a case tests when it sums data of this pattern.
std::string_view requirement_of_sum(DataPattern pattern);
constexpr int32_t number_of(DataPattern pattern) { return static_cast<int32_t>(pattern); }

}  // namespace backplane::conformance::numeric
