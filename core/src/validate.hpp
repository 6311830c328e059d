// SPDX-License-Identifier: Apache-2.0
// Checks an operator descriptor once, against the operator table: what core accepts, a plugin may rely on.
#pragma once

#include <backplane/ops.h>

#include "op_table.hpp"

namespace bp {

// The row of `op`; throws INVALID_ARGUMENT.
const OpRow& require_op(uint32_t op);

// Copies the attributes of an operator to `out` as this library knows them. Throws INVALID_ARGUMENT (missing, not wanted, a
// value outside its range) or UNSUPPORTED (non-zero bytes that this library does not know).
inline constexpr size_t max_attribute_bytes = sizeof(bp_pool_attributes);
void read_attributes(const OpRow& row, const void* attributes, unsigned char* out);

// Counts, dtypes, shapes, attributes, addresses. Throws INVALID_ARGUMENT with operator, operand and numbers. The attributes
// are those that read_attributes gave.
void validate(const OpRow& row, const bp_op_desc& desc);

// Whether the operator reads an output before it writes it.
bool reads_outputs(const OpRow& row) noexcept;

}  // namespace bp
