// SPDX-License-Identifier: Apache-2.0
// Single elements: random numbers, special values, tags.
#pragma once

#include "cases/numeric/problem.hpp"

namespace backplane::conformance::numeric {

// A tensor of zeros.
oracle::Tensor make_tensor(uint32_t dtype, const std::vector<int64_t>& shape);

// A random number in [0, 1).
long double unit(Random& random);
// Any bits of the dtype; bool: 0 or 1.
uint64_t any_bits(uint32_t dtype, Random& random);
// A float in [-1, 1), or any integer or bool.
uint64_t uniform_bits(uint32_t dtype, Random& random);
// A finite float of any magnitude and sign.
uint64_t any_finite(uint32_t dtype, Random& random);
// Floats: zeros, subnormals, infinities, NaN, extremes, 1 and the numbers next to it, halves.
// Integers: the ends of the range, 0, 1, powers of two.
const std::vector<uint64_t>& special_bits(uint32_t dtype);
// A small integer for element `index` of operand `operand`, different from those of adjacent
// elements.
uint64_t tag_bits(uint32_t dtype, int64_t index, size_t operand);

}  // namespace backplane::conformance::numeric
