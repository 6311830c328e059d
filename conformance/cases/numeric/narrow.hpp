// SPDX-License-Identifier: Apache-2.0
// Sums that f32 holds exactly, and an accumulator of 16 bits does not, however few terms it takes at a time. An honest device
// may round an operand to 16 bits, so bounds alone have room for a narrow accumulator of a few terms; these data have not.
#pragma once

#include <string_view>

#include "cases/numeric/composite.hpp"

namespace bp::conformance::numeric {

enum class Narrow : int32_t {
  none,
  range,   // terms near 2^15: each 4 neighbours add beyond 65504, the greatest f16, and the whole is far below
  digits,  // whole numbers: each 4 neighbours add beyond 2^11, where f16 has no odd ones, and the whole is small
};
inline constexpr std::string_view narrow_names[] = {"", "range", "digits"};

// Term `k` of `count`: 8 significant bits, so that each float dtype has it. `line` makes sums differ.
long double narrow_term(Narrow kind, int64_t k, int64_t count, int64_t line);

// The term as a product of two operands: the second, a power of two that f16 and four bits hold.
inline constexpr long double narrow_right = 4;

// [lines, count]: the first operands, a row of terms each.
oracle::Tensor narrow_rows(uint32_t dtype, const std::vector<int64_t>& shape, Narrow kind);

inline constexpr std::string_view narrow_requirement = "BP-NUM-045";

}  // namespace bp::conformance::numeric
