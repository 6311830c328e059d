// SPDX-License-Identifier: Apache-2.0
#include "cases/numeric/data_pattern.hpp"

#include <iterator>

namespace backplane::conformance::numeric {

namespace {

constexpr std::string_view kNames[] = {
    "tags",    "uniform",  "bits",     "special",   "bounds",   "cancel",   "zeros", "halfway", "exhaustive",
    "windows", "family",   "integers", "zero_mean", "spikes",   "positive", "tenth", "cancel",  "partial",
    "one_inf", "two_infs", "one_nan",  "overflow",  "negative", "few",      "equal"};
static_assert(std::size(kNames) == static_cast<size_t>(DataPattern::count));

}  // namespace

std::string_view name_of(DataPattern pattern) { return kNames[static_cast<size_t>(pattern)]; }

std::string_view requirement_of_sum(DataPattern pattern) {
  switch (pattern) {
    case DataPattern::one_inf:
    case DataPattern::two_infs:
    case DataPattern::one_nan:
      return "BP-NUM-043";
    case DataPattern::zero_mean:
    case DataPattern::spikes:
    case DataPattern::positive:
    case DataPattern::tenth:
    case DataPattern::cancel:
      return "BP-NUM-041";
    default:
      return "BP-NUM-040";
  }
}

}  // namespace backplane::conformance::numeric
