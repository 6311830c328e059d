// SPDX-License-Identifier: Apache-2.0
// What an operator gives on small whole numbers, by the oracle, in the bits of its outputs.
#pragma once

#include "cases/support/data.hpp"
#include "cases/support/op_desc.hpp"

namespace backplane::conformance {

// Results are exact for these numbers, in whatever order a device works.
bool is_exact_on_whole_numbers(uint32_t op);
// `desc` describes dense operands; `outputs` holds what is there before, where the operator reads it.
std::vector<Bytes> exact_results(OpDesc& desc, const std::vector<Bytes>& inputs, const std::vector<Bytes>& outputs,
                                 const std::vector<uint64_t>& scalars);

}  // namespace backplane::conformance
