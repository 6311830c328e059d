// SPDX-License-Identifier: Apache-2.0
// The ABI version that a descriptor needs: the gate of the growth rules.
#pragma once

#include <backplane/rules/attributes.hpp>

namespace backplane::rules {

// A row of growth.def.
struct Growth {
  enum class What : uint8_t {
    end,
    attribute,
    value,
    inputs,
    outputs,
    scalars,
    dtype,
    input_dtypes,
    output_dtypes,
    flags,
    view_flags,
    rule
  };

  What what = What::end;
  uint32_t since = 0;
  uint32_t op = 0;                          // id of the operator; 0 means any operator
  const AttributeLayout* layout = nullptr;  // layout of the attribute struct, or null
  uint32_t offset = 0;                      // offset of the field in the attribute struct
  // Index of the operand, maximum count before `since`, or dtype, depending on `what`.
  uint32_t index = 0;
  uint64_t old_bits = 0;  // old set of dtypes or old mask of flags
  double old_hi = 0;
  bool (*predicate)(const bp_op_desc& desc) = nullptr;
};

inline constexpr Growth kGrowth[] = {
#define BP_GROWN_ATTRIBUTE(stem, field, since_) \
  {.what = Growth::What::attribute,             \
   .since = BP_SINCE_##since_,                  \
   .layout = &detail::k_##stem##_layout,        \
   .offset = offsetof(bp_##stem##_attributes, field)},
#define BP_GROWN_VALUE(stem, field, old_hi_, since_)  \
  {.what = Growth::What::value,                       \
   .since = BP_SINCE_##since_,                        \
   .layout = &detail::k_##stem##_layout,              \
   .offset = offsetof(bp_##stem##_attributes, field), \
   .old_hi = static_cast<double>(old_hi_)},
#define BP_GROWN_INPUTS(symbol, old_max, since_) \
  {.what = Growth::What::inputs, .since = BP_SINCE_##since_, .op = BP_OP_##symbol, .index = old_max},
#define BP_GROWN_OUTPUTS(symbol, old_max, since_) \
  {.what = Growth::What::outputs, .since = BP_SINCE_##since_, .op = BP_OP_##symbol, .index = old_max},
#define BP_GROWN_SCALARS(symbol, old_max, since_) \
  {.what = Growth::What::scalars, .since = BP_SINCE_##since_, .op = BP_OP_##symbol, .index = old_max},
#define BP_GROWN_DTYPE(dtype_, since_) {.what = Growth::What::dtype, .since = BP_SINCE_##since_, .index = BP_##dtype_},
#define BP_GROWN_INPUT_DTYPES(symbol, index_, old_set, since_) \
  {.what = Growth::What::input_dtypes,                         \
   .since = BP_SINCE_##since_,                                 \
   .op = BP_OP_##symbol,                                       \
   .index = index_,                                            \
   .old_bits = old_set},
#define BP_GROWN_OUTPUT_DTYPES(symbol, index_, old_set, since_) \
  {.what = Growth::What::output_dtypes,                         \
   .since = BP_SINCE_##since_,                                  \
   .op = BP_OP_##symbol,                                        \
   .index = index_,                                             \
   .old_bits = old_set},
#define BP_GROWN_FLAGS(old_all, since_) {.what = Growth::What::flags, .since = BP_SINCE_##since_, .old_bits = old_all},
#define BP_GROWN_VIEW_FLAGS(old_all, since_) \
  {.what = Growth::What::view_flags, .since = BP_SINCE_##since_, .old_bits = (old_all) | BP_DESC_HINTS},
#define BP_GROWN_RULE(symbol, predicate_, since_) \
  {.what = Growth::What::rule, .since = BP_SINCE_##since_, .op = BP_OP_##symbol, .predicate = predicate_},
#include <backplane/rules/growth.def>
    {}};  // an array needs at least one element

namespace detail {

// True if `test` is true for any entry of the row's field. `attributes` are from copy_attributes.
template <class Test>
bool any_entry(const Growth& row, const void* attributes, const Test& test) {
  for (const AttributeField& field : row.layout->fields) {
    if (field.offset != row.offset) continue;
    for (uint32_t i = 0; i < field.count; ++i) {
      const auto* at = static_cast<const unsigned char*>(attributes) + field.offset + i * field.bytes();
      if (test(field, at)) return true;
    }
  }
  return false;
}

inline bool is_set(const AttributeField& field, const unsigned char* at) {  // also true for -0.0
  return std::any_of(at, at + field.bytes(), [](unsigned char byte) { return byte != 0; });
}

template <class Test>
bool any_view(const bp_op_desc& desc, const Test& test) {
  return std::any_of(desc.inputs, desc.inputs + desc.input_count, test) ||
         std::any_of(desc.outputs, desc.outputs + desc.output_count, test);
}

// An absent operand has no dtype, so a new set of dtypes does not affect it.
inline bool has_newer_dtype(const bp_tensor_desc* views, uint32_t count, const Growth& row) {
  return row.index < count && views[row.index].dtype != 0 && !in_set(row.old_bits, views[row.index].dtype);
}

inline bool concerns(const Growth& row, const OpInfo& op, const bp_op_desc& desc, const void* attributes) {
  if (row.op != 0 && row.op != op.id) return false;
  if (row.layout != nullptr && (row.layout != op.attributes || attributes == nullptr)) return false;
  switch (row.what) {
    case Growth::What::attribute:
      return any_entry(row, attributes, is_set);
    case Growth::What::value:
      return any_entry(row, attributes, [&](const AttributeField& field, const unsigned char* at) {
        return field_value(field, at) > row.old_hi;
      });
    case Growth::What::inputs:
      return desc.input_count > row.index;
    case Growth::What::outputs:
      return desc.output_count > row.index;
    case Growth::What::scalars:
      return desc.scalar_count > row.index;
    case Growth::What::dtype:
      return any_view(desc, [&](const bp_tensor_desc& view) { return view.dtype == row.index; });
    case Growth::What::input_dtypes:
      return has_newer_dtype(desc.inputs, desc.input_count, row);
    case Growth::What::output_dtypes:
      return has_newer_dtype(desc.outputs, desc.output_count, row);
    case Growth::What::flags:
      return (desc.flags & ~row.old_bits) != 0;
    case Growth::What::view_flags:
      return any_view(desc, [&](const bp_tensor_desc& view) { return (view.flags & ~row.old_bits) != 0; });
    case Growth::What::rule:
      return row.predicate(desc);
    default:
      return false;
  }
}

}  // namespace detail

// Returns the oldest ABI version whose tables permit the descriptor, which is the maximum `since`
// of the descriptor's parts. Hints and precision-relaxation flags are ignored. The descriptor must
// be valid and in canonical form. `attributes` are from copy_attributes, or null if there are none.
// Core calls this function when it creates a plan, but not when it uses a cached plan.
inline uint32_t since_of(const OpInfo& op, const bp_op_desc& desc, const void* attributes,
                         std::span<const Growth> growth = kGrowth) {
  uint32_t since = op.since;
  for (const Growth& row : growth) {
    if (row.since > since && detail::concerns(row, op, desc, attributes)) since = row.since;
  }
  return since;
}

}  // namespace backplane::rules
