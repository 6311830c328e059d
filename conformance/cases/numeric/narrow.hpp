// SPDX-License-Identifier: Apache-2.0
// Terms whose sums f32 represents exactly and a 16-bit accumulator does not, even for a few terms
// at a time. The bounds allow operands rounded to 16 bits, so they cannot detect a narrow
// accumulator of a few terms. These data detect it.
#pragma once

#include <string_view>

#include "cases/numeric/composite.hpp"

namespace backplane::conformance::numeric {

enum class Narrow : int32_t {
  none,
  // terms near 2^15: 4 adjacent terms exceed the greatest f16, 65504; the whole sum does not
  range,
  // integers: 4 adjacent terms exceed 2^11, above which f16 has no odd integers; the whole sum is
  // small
  digits,
};
inline constexpr std::string_view kNarrowNames[] = {"", "range", "digits"};

// Term `k` of `count`. It has at most 8 significant bits, which every float dtype represents.
// `line` makes the sums of lines differ.
long double narrow_term(Narrow kind, int64_t k, int64_t count, int64_t line);

// The second operand of each product, a power of two that f16 and 4-bit values represent.
inline constexpr long double kNarrowRight = 4;

// The first operands [lines, count]: one row of terms per line.
oracle::Tensor narrow_rows(uint32_t dtype, const std::vector<int64_t>& shape, Narrow kind);

// The second operands, all equal.
oracle::Tensor narrow_weights(uint32_t dtype, const std::vector<int64_t>& shape);

inline constexpr std::string_view kNarrowRequirement = "BP-NUM-045";

}  // namespace backplane::conformance::numeric
