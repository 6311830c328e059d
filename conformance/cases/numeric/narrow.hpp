// SPDX-License-Identifier: Apache-2.0
// Sums that f32 holds exactly and a 16-bit accumulator does not, even for a few terms at a time. Bounds let an honest
// device round an operand to 16 bits, so they miss a narrow accumulator of a few terms. These data do not.
#pragma once

#include <string_view>

#include "cases/numeric/composite.hpp"

namespace backplane::conformance::numeric {

enum class Narrow : int32_t {
  none,
  range,   // terms near 2^15: 4 neighbours add up beyond 65504, the greatest f16; the whole is far below
  digits,  // whole numbers: 4 neighbours add up beyond 2^11, where f16 has no odd ones; the whole is small
};
inline constexpr std::string_view kNarrowNames[] = {"", "range", "digits"};

// Term `k` of `count`: 8 significant bits, so that each float dtype holds it. `line` makes sums differ.
long double narrow_term(Narrow kind, int64_t k, int64_t count, int64_t line);

// A term is a product of two operands. The second is this power of two, which f16 and 4-bit values hold.
inline constexpr long double kNarrowRight = 4;

// [lines, count]: the first operands, a row of terms each.
oracle::Tensor narrow_rows(uint32_t dtype, const std::vector<int64_t>& shape, Narrow kind);

// The second operands: all the same.
oracle::Tensor narrow_weights(uint32_t dtype, const std::vector<int64_t>& shape);

inline constexpr std::string_view kNarrowRequirement = "BP-NUM-045";

}  // namespace backplane::conformance::numeric
