// SPDX-License-Identifier: Apache-2.0
// Fills operands with a data pattern.
#pragma once

#include "cases/numeric/problem.hpp"

namespace backplane::conformance::numeric {

// Fills the tensor with a pattern for sums, comparisons or orders. `terms` is the maximum number of
// elements in a sum; sums of `integers` with so many terms are exact.
void fill(oracle::Tensor& tensor, DataPattern pattern, int64_t terms, Random& random);
// Integers of at most this magnitude, of either sign.
void fill_integers(oracle::Tensor& tensor, int64_t limit, Random& random);
// The limit up to which a float dtype represents every integer.
int64_t whole_limit(uint32_t dtype);

// Fills the inputs of an elementwise operator. `to` is the output's dtype, for halfway points.
void fill_inputs(std::vector<oracle::Tensor>& inputs, const Problem& problem, uint32_t to, Random& random);

}  // namespace backplane::conformance::numeric
