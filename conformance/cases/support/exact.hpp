// SPDX-License-Identifier: Apache-2.0
// Computes exact results of an operator on small integers with the oracle.
#pragma once

#include "cases/support/data.hpp"
#include "cases/support/op_desc.hpp"

namespace backplane::conformance {

// Returns whether the operator's results for small integers are exact in any order of computation.
bool is_exact_on_whole_numbers(uint32_t op);
// Returns the oracle's results as bytes. `desc` describes dense operands. `outputs` contains the
// previous contents of the outputs, which some operators read.
std::vector<Bytes> exact_results(OpDesc& desc, const std::vector<Bytes>& inputs, const std::vector<Bytes>& outputs,
                                 const std::vector<uint64_t>& scalars);

}  // namespace backplane::conformance
