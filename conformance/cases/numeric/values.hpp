// SPDX-License-Identifier: Apache-2.0
// Single elements: random, special, or told apart by their position.
#pragma once

#include "cases/numeric/problem.hpp"

namespace backplane::conformance::numeric {

// A dense tensor of zeros.
oracle::Tensor make_tensor(uint32_t dtype, const std::vector<int64_t>& shape);

// In [0, 1).
long double unit(Random& random);
// Any bits of the dtype; bool: 0 or 1.
uint64_t any_bits(uint32_t dtype, Random& random);
// A float in [-1, 1), any integer, any bool.
uint64_t uniform_bits(uint32_t dtype, Random& random);
// A float of any magnitude that the dtype has, either sign, no NaN and no infinity.
uint64_t any_finite(uint32_t dtype, Random& random);
// Zeros, subnormals, infinities, NaN, extremes, 1 and its neighbours, halves; of integers the ends, 0, 1, powers of two.
const std::vector<uint64_t>& special_bits(uint32_t dtype);
// Small integers that differ from those of the neighbours: element `index` of operand `operand`.
uint64_t tag_bits(uint32_t dtype, int64_t index, size_t operand);

}  // namespace backplane::conformance::numeric
