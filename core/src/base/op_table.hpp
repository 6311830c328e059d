// SPDX-License-Identifier: Apache-2.0
// The operator table and the dtype table of the rulebook, under core's names.
#pragma once

#include <backplane/rules/op_table.hpp>

namespace bp {

using backplane::rules::dtype_by_name;
using backplane::rules::dtype_bytes;
using backplane::rules::dtype_name;
using backplane::rules::find_dtype;
using backplane::rules::op_rows;
using backplane::rules::value_mask;
using OpRow = backplane::rules::OpInfo;

// Null for an id that is no operator.
inline const OpRow* op_row(uint32_t op) noexcept { return backplane::rules::find_op(op); }

}  // namespace bp
