// SPDX-License-Identifier: Apache-2.0
// Checks an operator descriptor against the ABI's rules, so that plugins need not check it again.
#pragma once

#include <backplane/rules/check.hpp>

#include "base/op_table.hpp"

namespace backplane::core {

using rules::reads_outputs;

// Returns the row of `op`. Throws UNSUPPORTED if there is none.
const OpRow& require_op(uint32_t op);

// Copies an operator's attributes to `out`. Throws INVALID_ARGUMENT if the attributes are missing or
// have an illegal size. Throws UNSUPPORTED if a value is out of range, or if bytes that this library
// does not know are nonzero.
inline constexpr size_t kMaxAttributeBytes = rules::kMaxAttributeBytes;
void read_attributes(const OpRow& row, const void* attributes, unsigned char* out);

// Checks counts, dtypes, shapes, attributes and addresses. Throws INVALID_ARGUMENT or UNSUPPORTED
// with the operator, the operand and the numbers in the message. The descriptor must be canonical,
// and its attributes must come from read_attributes.
void validate(const OpRow& row, const bp_op_desc& desc);

}  // namespace backplane::core
