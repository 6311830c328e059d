// SPDX-License-Identifier: Apache-2.0
// Generates single elements: random numbers, special values and tags.
#pragma once

#include "cases/numeric/problem.hpp"

namespace backplane::conformance::numeric {

// Returns a tensor of zeros.
oracle::Tensor make_tensor(uint32_t dtype, const std::vector<int64_t>& shape);

// Returns a random number in [0, 1).
long double unit(Random& random);
// Returns a random bit pattern of `dtype`. For bool, the result is 0 or 1.
uint64_t any_bits(uint32_t dtype, Random& random);
// Returns a random float in [-1, 1), or any integer or bool.
uint64_t uniform_bits(uint32_t dtype, Random& random);
// Returns a random finite float of any magnitude and sign.
uint64_t any_finite(uint32_t dtype, Random& random);
// Returns the special values of a dtype. For floats, these are zeros, subnormals, infinities, NaN,
// extremes, 1 and the numbers next to 1, and small numbers such as 2.5. For integers, these are the
// ends of the range, small numbers, powers of two, and shift amounts near the width.
const std::vector<uint64_t>& special_bits(uint32_t dtype);
// Returns a small integer for element `index` of operand `operand`. Adjacent elements have
// different integers.
uint64_t tag_bits(uint32_t dtype, int64_t index, size_t operand);

}  // namespace backplane::conformance::numeric
