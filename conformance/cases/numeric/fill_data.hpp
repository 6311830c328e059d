// SPDX-License-Identifier: Apache-2.0
// Fills operands with a data pattern.
#pragma once

#include "cases/numeric/problem.hpp"

namespace backplane::conformance::numeric {

// Fills the tensor with a pattern for sums, comparisons or sorting. `terms` is the maximum number
// of elements in a sum. Sums of the pattern `integers` with up to `terms` elements are exact.
void fill(oracle::Tensor& tensor, DataPattern pattern, int64_t terms, Random& random);
// Fills the tensor with integers of either sign, whose magnitude is at most `limit`.
void fill_integers(oracle::Tensor& tensor, int64_t limit, Random& random);
// Returns a limit up to which a float dtype represents every integer.
int64_t whole_limit(uint32_t dtype);

// Fills the inputs of an elementwise operator. `to` is the dtype of the output, which the pattern
// `halfway` needs.
void fill_inputs(std::vector<oracle::Tensor>& inputs, const Problem& problem, uint32_t to, Random& random);

}  // namespace backplane::conformance::numeric
