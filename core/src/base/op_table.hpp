// SPDX-License-Identifier: Apache-2.0
// Makes the operator table and the dtype table of the ABI's rules available in namespace core.
#pragma once

#include <backplane/rules/op_table.hpp>

namespace backplane::core {

using rules::dtype_by_name;
using rules::dtype_bytes;
using rules::dtype_name;
using rules::find_dtype;
using rules::op_rows;
using rules::value_mask;
using OpRow = rules::OpInfo;

// Returns null if `op` is not an operator.
inline const OpRow* op_row(uint32_t op) noexcept { return rules::find_op(op); }

}  // namespace backplane::core
