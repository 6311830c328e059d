// SPDX-License-Identifier: Apache-2.0
// The operator table and the dtype table as data, derived from ops.def, attributes.def and dtypes.def.
#pragma once

#include <backplane/backplane.h>

#include <array>
#include <cstdint>
#include <span>

namespace bp {

struct DtypeRow {
  uint32_t id;
  const char* name;
  uint32_t bytes;
  enum class Kind : uint8_t { BOOL, UINT, INT, FLOAT } kind;
  bool core;
};

// One field of an attribute struct.
struct AttributeField {
  const char* name;
  enum class Type : uint8_t { u32, i32, f32, i64, reserved } type;
  uint32_t offset;
  uint32_t count;
  long double lo, hi;  // legal values, both included; every integer field fits exactly
};

struct AttributeLayout {
  const char* stem;
  uint32_t bytes;  // 0 for `no`
  std::span<const AttributeField> fields;
};

struct OpRow {
  uint32_t id;
  const char* name;
  uint32_t kind;
  uint32_t inputs_min, inputs_max, outputs_min, outputs_max;
  uint32_t scalars, scalar_dtype;  // dtype 0: the first output's
  const AttributeLayout* attributes;
  uint32_t shape_rule, dtype_rule, dtypes, profile;
  const char* accuracy;
  const char* doc;
};

std::span<const DtypeRow> dtype_rows() noexcept;
std::span<const OpRow> op_rows() noexcept;  // in order of id

// Null for an id that is no dtype or no operator.
const DtypeRow* dtype_row(uint32_t dtype) noexcept;
extern const std::array<const OpRow*, BP_OP_LIMIT> op_rows_by_id;
inline const OpRow* op_row(uint32_t op) noexcept { return op < BP_OP_LIMIT ? op_rows_by_id[op] : nullptr; }

// Bytes of an element, 0 for an unknown dtype; one load.
extern const std::array<uint8_t, BP_DTYPE_LIMIT> dtype_bytes_table;
inline uint32_t dtype_bytes(uint32_t dtype) noexcept { return dtype < BP_DTYPE_LIMIT ? dtype_bytes_table[dtype] : 0; }
// The bits that a value of the dtype has in an immediate or scalar; bp_operand wants the rest zero.
inline uint64_t value_mask(uint32_t dtype) noexcept {
  const uint32_t bytes = dtype_bytes(dtype);
  return bytes < sizeof(uint64_t) ? (uint64_t{1} << (8 * bytes)) - 1 : UINT64_MAX;
}
// "f32", or "unknown".
const char* dtype_name(uint32_t dtype) noexcept;

}  // namespace bp
