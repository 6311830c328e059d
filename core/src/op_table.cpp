// SPDX-License-Identifier: Apache-2.0
// The tables, expanded by the preprocessor.
#include "op_table.hpp"

#include <array>
#include <cstddef>
#include <type_traits>

namespace bp {

namespace {

template <class T>
constexpr AttributeField::Type field_type() {
  if constexpr (std::is_same_v<T, uint32_t>) return AttributeField::Type::u32;
  if constexpr (std::is_same_v<T, int32_t>) return AttributeField::Type::i32;
  if constexpr (std::is_same_v<T, float>) return AttributeField::Type::f32;
  if constexpr (std::is_same_v<T, int64_t>) return AttributeField::Type::i64;
}

#define BP_ATTRS_BEGIN(stem) constexpr AttributeField stem##_fields[] = {
#define BP_ATTR(stem, type, field, lo, hi, doc) \
  {#field, field_type<type>(), offsetof(bp_##stem##_attributes, field), 1, lo, hi},
#define BP_ATTR_ARRAY(stem, type, field, count, lo, hi, doc) \
  {#field, field_type<type>(), offsetof(bp_##stem##_attributes, field), count, lo, hi},
#define BP_ATTR_RESERVED(stem, field) \
  {#field, AttributeField::Type::reserved, offsetof(bp_##stem##_attributes, field), 1, 0, 0},
#define BP_ATTRS_END(stem) \
  }                        \
  ;                        \
  constexpr AttributeLayout stem##_layout = {#stem, sizeof(bp_##stem##_attributes), stem##_fields};
#include <backplane/attributes.def>
#undef BP_ATTRS_BEGIN
#undef BP_ATTR
#undef BP_ATTR_ARRAY
#undef BP_ATTR_RESERVED
#undef BP_ATTRS_END

// `no` stands for "the pointer is null", so it has no bytes.
constexpr AttributeLayout no_attributes = {"no", 0, {}};
constexpr const AttributeLayout* layout_of(const AttributeLayout& layout) {
  return &layout == &no_layout ? &no_attributes : &layout;
}

constexpr uint32_t BP_SCALAR_NONE = 0, BP_SCALAR_OUT = 0, BP_SCALAR_I64 = BP_I64, BP_SCALAR_F32 = BP_F32;

constexpr OpRow rows[] = {
#define BP_OP_ROW(id, symbol, name, kind, imin, imax, omin, omax, smin, smax, sdtype, attrs, shape, rule, dtypes, i64, \
                  acc, prof, since, doc)                                                                               \
  {id,                                                                                                                 \
   name,                                                                                                               \
   BP_KIND_##kind,                                                                                                     \
   imin,                                                                                                               \
   imax,                                                                                                               \
   omin,                                                                                                               \
   omax,                                                                                                               \
   smin,                                                                                                               \
   smax,                                                                                                               \
   BP_SCALAR_##sdtype,                                                                                                 \
   layout_of(attrs##_layout),                                                                                          \
   BP_SHAPE_##shape,                                                                                                   \
   BP_RULE_##rule,                                                                                                     \
   BP_SET_##dtypes,                                                                                                    \
   BP_PROFILE_##prof,                                                                                                  \
   #acc,                                                                                                               \
   doc},
#include <backplane/ops.def>
#undef BP_OP_ROW
};

constexpr DtypeRow dtypes[] = {
#define BP_DTYPE_ROW(id, symbol, name, bytes, kind, core) {id, name, bytes, DtypeRow::Kind::kind, core != 0},
#include <backplane/dtypes.def>
#undef BP_DTYPE_ROW
};

constexpr std::array<const DtypeRow*, BP_DTYPE_LIMIT> dtype_by_id = [] {
  std::array<const DtypeRow*, BP_DTYPE_LIMIT> table{};
  for (const DtypeRow& row : dtypes) table[row.id] = &row;
  return table;
}();

}  // namespace

constinit const std::array<const OpRow*, BP_OP_LIMIT> op_rows_by_id = [] {
  std::array<const OpRow*, BP_OP_LIMIT> table{};
  for (const OpRow& row : rows) table[row.id] = &row;
  return table;
}();

constinit const std::array<uint8_t, BP_DTYPE_LIMIT> dtype_bytes_table = [] {
  std::array<uint8_t, BP_DTYPE_LIMIT> table{};
  for (const DtypeRow& row : dtypes) table[row.id] = static_cast<uint8_t>(row.bytes);
  return table;
}();

std::span<const DtypeRow> dtype_rows() noexcept { return dtypes; }
std::span<const OpRow> op_rows() noexcept { return rows; }
const DtypeRow* dtype_row(uint32_t dtype) noexcept { return dtype < BP_DTYPE_LIMIT ? dtype_by_id[dtype] : nullptr; }
const char* dtype_name(uint32_t dtype) noexcept {
  const DtypeRow* row = dtype_row(dtype);
  return row == nullptr ? "unknown" : row->name;
}

}  // namespace bp
