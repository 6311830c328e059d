// SPDX-License-Identifier: Apache-2.0
// Generates terms whose sums detect a narrow accumulator. An f32 accumulator represents all partial sums exactly. A
// 16-bit accumulator does not, even after a few terms. Other data cannot detect a 16-bit accumulator, because the error
// bounds already allow operands that are rounded to 16 bits.
#pragma once

#include <string_view>

#include "cases/numeric/composite.hpp"

namespace backplane::conformance::numeric {

enum class Narrow : int32_t {
  none,
  // Terms near 2^15. The sum of 4 adjacent terms exceeds 65504, the maximum of f16. The sum of all terms does not.
  range,
  // Integers. The sum of 4 adjacent terms exceeds 2^11, above which f16 has no odd integers. The sum of all terms is
  // small.
  digits,
};
inline constexpr std::string_view kNarrowNames[] = {"", "range", "digits"};

// Returns term `k` of `count`. A term has at most 8 significant bits, which every float dtype
// represents. Different values of `line` give different sums.
long double narrow_term(Narrow kind, int64_t k, int64_t count, int64_t line);

// The second factor of each product: a power of two that f16 and 4-bit integers represent.
inline constexpr long double kNarrowRight = 4;

// Returns the first factors of the products. The shape is [lines, count], with one row of terms per
// line.
oracle::Tensor narrow_rows(uint32_t dtype, const std::vector<int64_t>& shape, Narrow kind);

// Returns the second factors of the products, which are all equal.
oracle::Tensor narrow_weights(uint32_t dtype, const std::vector<int64_t>& shape);

inline constexpr std::string_view kNarrowRequirement = "BP-NUM-045";

}  // namespace backplane::conformance::numeric
