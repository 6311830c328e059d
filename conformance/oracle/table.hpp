// SPDX-License-Identifier: Apache-2.0
// Aliases of the operator table for the oracle. The oracle reads all tolerances from the table's
// accuracy column.
#pragma once

#include <backplane/rules/op_table.hpp>

namespace backplane::conformance::oracle {

using backplane::rules::Accuracy;
using Operator = backplane::rules::OpInfo;

inline constexpr std::span<const Operator> kOperators = backplane::rules::op_rows();

// Returns null for an unknown operator.
constexpr const Operator* operator_of(uint32_t id) { return backplane::rules::find_op(id); }

}  // namespace backplane::conformance::oracle
