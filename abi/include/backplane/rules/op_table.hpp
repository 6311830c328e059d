// SPDX-License-Identifier: Apache-2.0
// The operator table and the layouts of attribute structs, derived from ops.def and attributes.def.
// The host, the author kit, the oracle and the tools share these tables.
#pragma once

#include <backplane/ops.h>

#include <algorithm>
#include <backplane/rules/dtypes.hpp>
#include <cstddef>
#include <type_traits>

namespace backplane::rules {

// One field of an attribute struct.
struct AttributeField {
  enum class Type : uint8_t { u32, i32, f32, i64, reserved };  // `reserved` is a u32 that is zero

  const char* name;
  Type type;
  uint32_t offset;
  uint32_t count;  // number of entries; more than 1 for an array
  double lo, hi;   // range of legal values, both ends included
  const char* doc;

  constexpr uint32_t bytes() const { return type == Type::i64 ? 8 : 4; }  // bytes of one entry
};

struct AttributeLayout {
  const char* stem;
  uint32_t bytes;                          // size of the struct; 0 without attributes
  std::span<const AttributeField> fields;  // all fields except struct_size
  bool optional;                           // true if null attributes mean zeros

  // True if the first field is the operator's axis.
  constexpr bool has_axis() const { return !fields.empty() && std::string_view(fields[0].name) == "axis"; }
};

// An accuracy class of docs/spec/accuracy.md. E means exact, R correctly rounded, U at most `ulps`
// ulp, S sum, D dot product, and C the composite's own bound.
struct Accuracy {
  char letter;
  double ulps;
  const char* text;  // text in ops.def, such as "U(2.5)"
};

// A row of ops.def.
struct OpInfo {
  uint32_t id;
  const char* name;
  uint32_t kind;  // BP_KIND_*
  uint32_t inputs_min, inputs_max, outputs_min, outputs_max;
  uint32_t scalars_min, scalars_max;
  uint32_t scalar_dtype;  // 0 means the first output's dtype
  const AttributeLayout* attributes;
  uint32_t shape_rule, dtype_rule;  // BP_SHAPE_*, BP_RULE_*
  uint64_t dtypes;                  // mask of BP_DTYPE_BIT
  uint32_t i64_profile;             // first profile in which i64 is mandatory as T; 0 means none
  Accuracy accuracy;
  uint32_t profile;  // BP_PROFILE_*
  uint32_t since;    // ABI version that introduced the operator
  const char* doc;
};

namespace detail {

template <class T>
constexpr AttributeField::Type field_type() {
  if constexpr (std::is_same_v<T, uint32_t>) return AttributeField::Type::u32;
  if constexpr (std::is_same_v<T, int32_t>) return AttributeField::Type::i32;
  if constexpr (std::is_same_v<T, float>) return AttributeField::Type::f32;
  if constexpr (std::is_same_v<T, int64_t>) return AttributeField::Type::i64;
}

// True for the attribute structs that may be null.
template <class Attributes>
inline constexpr bool kOptional = false;
#define BP_ATTRS_BEGIN(stem)
#define BP_ATTR(stem, type, field, lo, hi, doc)
#define BP_ATTR_ARRAY(stem, type, field, count, lo, hi, doc)
#define BP_ATTR_RESERVED(stem, field)
#define BP_ATTRS_END(stem)
#define BP_ATTRS_OPTIONAL(stem) \
  template <>                   \
  inline constexpr bool kOptional<bp_##stem##_attributes> = true;
#include <backplane/attributes.def>
#undef BP_ATTRS_BEGIN
#undef BP_ATTR
#undef BP_ATTR_ARRAY
#undef BP_ATTR_RESERVED
#undef BP_ATTRS_END

#define BP_ATTRS_BEGIN(stem) inline constexpr AttributeField k_##stem##_fields[] = {
#define BP_ATTR(stem, type, field, lo, hi, doc)                              \
  {#field, field_type<type>(),      offsetof(bp_##stem##_attributes, field), \
   1,      static_cast<double>(lo), static_cast<double>(hi),                 \
   doc},
#define BP_ATTR_ARRAY(stem, type, field, count, lo, hi, doc)                 \
  {#field, field_type<type>(),      offsetof(bp_##stem##_attributes, field), \
   count,  static_cast<double>(lo), static_cast<double>(hi),                 \
   doc},
#define BP_ATTR_RESERVED(stem, field) \
  {#field, AttributeField::Type::reserved, offsetof(bp_##stem##_attributes, field), 1, 0, 0, "zero"},
#define BP_ATTRS_END(stem)                                                                                       \
  }                                                                                                              \
  ;                                                                                                              \
  inline constexpr AttributeLayout k_##stem##_layout = {                                                         \
      #stem, std::string_view(#stem) == "no" ? 0u : uint32_t{sizeof(bp_##stem##_attributes)}, k_##stem##_fields, \
      kOptional<bp_##stem##_attributes>};
#include <backplane/attributes.def>
#undef BP_ATTRS_BEGIN
#undef BP_ATTR
#undef BP_ATTR_ARRAY
#undef BP_ATTR_RESERVED
#undef BP_ATTRS_END

inline constexpr const AttributeLayout* kLayouts[] = {
#define BP_ATTRS_BEGIN(stem) &k_##stem##_layout,
#define BP_ATTR(stem, type, field, lo, hi, doc)
#define BP_ATTR_ARRAY(stem, type, field, count, lo, hi, doc)
#define BP_ATTR_RESERVED(stem, field)
#define BP_ATTRS_END(stem)
#include <backplane/attributes.def>
#undef BP_ATTRS_BEGIN
#undef BP_ATTR
#undef BP_ATTR_ARRAY
#undef BP_ATTR_RESERVED
#undef BP_ATTRS_END
};

// Constants whose names are the values of the columns scalar_dtype, i64 and accuracy of ops.def.
// NOLINTBEGIN(readability-identifier-naming)
namespace scalar {
inline constexpr uint32_t NONE = 0, OUT = 0;
#define BP_DTYPE_ROW(id, symbol, name, bytes, kind, core) inline constexpr uint32_t symbol = id;
#include <backplane/dtypes.def>
#undef BP_DTYPE_ROW
}  // namespace scalar

namespace i64 {
inline constexpr uint32_t NONE = 0, CORE = BP_PROFILE_CORE, INFER = BP_PROFILE_INFER, TRAIN = BP_PROFILE_TRAIN;
}  // namespace i64

namespace accuracy {
inline constexpr Accuracy E{'E', 0, ""}, R{'R', 0, ""}, S{'S', 0, ""}, D{'D', 0, ""}, C{'C', 0, ""};
constexpr Accuracy U(double ulps) { return {'U', ulps, ""}; }
// NOLINTEND(readability-identifier-naming)
constexpr Accuracy with_text(Accuracy of, const char* text) { return {of.letter, of.ulps, text}; }

inline constexpr OpInfo kRows[] = {
#define BP_OP_ROW(id, symbol, name, kind, imin, imax, omin, omax, smin, smax, sdtype, attrs, shape, rule, set, \
                  i64_from, acc, prof, since, family, doc)                                                     \
  {id,                                                                                                         \
   name,                                                                                                       \
   BP_KIND_##kind,                                                                                             \
   imin,                                                                                                       \
   imax,                                                                                                       \
   omin,                                                                                                       \
   omax,                                                                                                       \
   smin,                                                                                                       \
   smax,                                                                                                       \
   scalar::sdtype,                                                                                             \
   &k_##attrs##_layout,                                                                                        \
   BP_SHAPE_##shape,                                                                                           \
   BP_RULE_##rule,                                                                                             \
   BP_SET_##set,                                                                                               \
   i64::i64_from,                                                                                              \
   with_text(acc, #acc),                                                                                       \
   BP_PROFILE_##prof,                                                                                          \
   BP_SINCE_##since,                                                                                           \
   doc},
#include <backplane/ops.def>
#undef BP_OP_ROW
};
}  // namespace accuracy

constexpr std::array<const OpInfo*, BP_OP_LIMIT> index_ops() {
  std::array<const OpInfo*, BP_OP_LIMIT> table{};
  for (const OpInfo& row : accuracy::kRows) table[row.id] = &row;
  return table;
}
inline constexpr auto kOpsById = index_ops();

}  // namespace detail

// Returns all rows in the order of their ids.
constexpr std::span<const OpInfo> op_rows() { return detail::accuracy::kRows; }
// Returns null for an id that is not an operator.
constexpr const OpInfo* find_op(uint32_t id) { return id < BP_OP_LIMIT ? detail::kOpsById[id] : nullptr; }
constexpr const char* op_name(uint32_t id) {
  const OpInfo* op = find_op(id);
  return op == nullptr ? "unknown" : op->name;
}
// Returns the layouts of all attribute structs, including the empty layout `no` for operators
// without attributes.
constexpr std::span<const AttributeLayout* const> attribute_layouts() { return detail::kLayouts; }

// Size in bytes of the largest attribute struct.
inline constexpr std::size_t kMaxAttributeBytes = [] {
  std::size_t most = BP_ATTRIBUTES_MIN_SIZE;
  for (const AttributeLayout* layout : detail::kLayouts) most = std::max<std::size_t>(most, layout->bytes);
  return most;
}();
inline constexpr uint32_t kMaxScalars = [] {
  uint32_t most = 0;
  for (const OpInfo& row : detail::accuracy::kRows) most = std::max(most, row.scalars_max);
  return most;
}();
inline constexpr uint32_t kMaxOperands = [] {  // maximum of inputs plus outputs
  uint32_t most = 0;
  for (const OpInfo& row : detail::accuracy::kRows) most = std::max(most, row.inputs_max + row.outputs_max);
  return most;
}();

// Returns the dtype of the scalars of `desc`. Returns 0 if the scalars have the dtype of the first
// output and `desc` has no outputs.
constexpr uint32_t scalar_dtype(const OpInfo& op, const bp_op_desc& desc) {
  if (op.scalar_dtype != 0) return op.scalar_dtype;
  return desc.output_count == 0 ? 0u : desc.outputs[0].dtype;
}

}  // namespace backplane::rules
