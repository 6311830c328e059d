// SPDX-License-Identifier: Apache-2.0
// Checks an operator descriptor by the rulebook. Plugins may rely on it.
#pragma once

#include <backplane/rules/check.hpp>

#include "base/op_table.hpp"

namespace backplane::core {

using rules::reads_outputs;

// The row of `op`; throws UNSUPPORTED.
const OpRow& require_op(uint32_t op);

// Copies an operator's attributes to `out`. Throws INVALID_ARGUMENT (missing, illegal size) or
// UNSUPPORTED (a value out of range, or nonzero bytes that this library does not know).
inline constexpr size_t kMaxAttributeBytes = rules::kMaxAttributeBytes;
void read_attributes(const OpRow& row, const void* attributes, unsigned char* out);

// Checks counts, dtypes, shapes, attributes and addresses. Throws INVALID_ARGUMENT or UNSUPPORTED
// with operator, operand and numbers. The descriptor must be canonical, with attributes from
// read_attributes.
void validate(const OpRow& row, const bp_op_desc& desc);

}  // namespace backplane::core
