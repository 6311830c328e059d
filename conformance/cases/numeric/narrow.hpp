// SPDX-License-Identifier: Apache-2.0
// Sums that f32 represents exactly and a 16-bit accumulator does not, even for a few terms at a
// time. The bounds allow operands rounded to 16 bits, so they miss a narrow accumulator of a few
// terms. These data detect it.
#pragma once

#include <string_view>

#include "cases/numeric/composite.hpp"

namespace backplane::conformance::numeric {

enum class Narrow : int32_t {
  none,
  range,   // terms near 2^15: the sum of 4 neighbours exceeds the greatest f16, 65504; the whole sum does not
  digits,  // integers: the sum of 4 neighbours exceeds 2^11, beyond which f16 has no odd ones; the whole is small
};
inline constexpr std::string_view kNarrowNames[] = {"", "range", "digits"};

// Term `k` of `count`, with 8 significant bits for every float dtype. `line` makes sums differ.
long double narrow_term(Narrow kind, int64_t k, int64_t count, int64_t line);

// The second operand of each product, a power of two that f16 and 4-bit values represent.
inline constexpr long double kNarrowRight = 4;

// The first operands [lines, count]: a row of terms per line.
oracle::Tensor narrow_rows(uint32_t dtype, const std::vector<int64_t>& shape, Narrow kind);

// The second operands, all equal.
oracle::Tensor narrow_weights(uint32_t dtype, const std::vector<int64_t>& shape);

inline constexpr std::string_view kNarrowRequirement = "BP-NUM-045";

}  // namespace backplane::conformance::numeric
