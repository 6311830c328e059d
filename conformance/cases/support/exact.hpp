// SPDX-License-Identifier: Apache-2.0
// The oracle's results of an operator for small integers, as bits.
#pragma once

#include "cases/support/data.hpp"
#include "cases/support/op_desc.hpp"

namespace backplane::conformance {

// Whether the operator's results for small integers are exact in any order of computation.
bool is_exact_on_whole_numbers(uint32_t op);
// `desc` describes dense operands. `outputs` are the previous contents of the outputs, if the
// operator reads them.
std::vector<Bytes> exact_results(OpDesc& desc, const std::vector<Bytes>& inputs, const std::vector<Bytes>& outputs,
                                 const std::vector<uint64_t>& scalars);

}  // namespace backplane::conformance
