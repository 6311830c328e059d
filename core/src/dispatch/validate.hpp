// SPDX-License-Identifier: Apache-2.0
// Checks an operator descriptor once, by the rulebook: a plugin may rely on what core accepts.
#pragma once

#include <backplane/rules/check.hpp>

#include "base/op_table.hpp"

namespace backplane::core {

using rules::reads_outputs;

// The row of `op`; throws UNSUPPORTED.
const OpRow& require_op(uint32_t op);

// Copies the attributes of an operator to `out` as this library knows them. Throws INVALID_ARGUMENT (missing, an
// illegal size) or UNSUPPORTED (a value outside its range, non-zero bytes that this library does not know).
inline constexpr size_t kMaxAttributeBytes = rules::kMaxAttributeBytes;
void read_attributes(const OpRow& row, const void* attributes, unsigned char* out);

// Counts, dtypes, shapes, attributes, addresses. Throws INVALID_ARGUMENT or UNSUPPORTED with operator, operand and
// numbers. The descriptor is in canonical form; its attributes come from read_attributes.
void validate(const OpRow& row, const bp_op_desc& desc);

}  // namespace backplane::core
