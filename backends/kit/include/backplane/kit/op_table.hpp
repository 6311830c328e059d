// SPDX-License-Identifier: Apache-2.0
// The operator and dtype tables as data, and the checks of attribute values, derived from the ABI's .def files.
#pragma once

#include <array>
#include <backplane/kit/structs.hpp>
#include <backplane/rules/dtypes.hpp>

namespace backplane::kit {

using rules::dtype_bytes;
using rules::dtype_info;
using rules::dtype_list;
using rules::dtype_name;
using rules::DtypeInfo;
using rules::in_set;

// Room for any operator's attributes.
struct Attributes {
  static constexpr std::size_t kBytes = std::max({
#define BP_ATTRS_BEGIN(stem) sizeof(bp_##stem##_attributes),
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
  });
  alignas(8) unsigned char bytes[kBytes];

  template <class T>
  const T& as() const {
    return *reinterpret_cast<const T*>(bytes);
  }
};

namespace detail {
// A value outside is one that a newer host may know, so the answer is a no and not a reproach.
// Integers are compared as such: a double does not hold them all.
template <class T, class Lo, class Hi>
Status check_range(const char* stem, const char* field, T value, Lo lo, Hi hi) {
  if constexpr (std::is_integral_v<T>) {
    if (std::cmp_greater_equal(value, lo) && std::cmp_less_equal(value, hi)) return {};
  } else {
    const double number = static_cast<double>(value);
    if (number >= static_cast<double>(lo) && number <= static_cast<double>(hi)) return {};
  }
  return unsupported(stem, "_attributes.", field, " is ", value, ", this plugin knows ", lo, " to ", hi);
}

#define BP_ATTRS_BEGIN(stem)                                                         \
  inline Status check_##stem(const void* in, Attributes& out) {                      \
    bp_##stem##_attributes known;                                                    \
    Status status = read_input(in, sizeof(known), "bp_" #stem "_attributes", known); \
    if (!status.ok()) return status;
#define BP_ATTR(stem, type, field, lo, hi, doc) \
  if (status = check_range(#stem, #field, known.field, lo, hi); !status.ok()) return status;
#define BP_ATTR_ARRAY(stem, type, field, count, lo, hi, doc)                             \
  for (const auto entry : known.field) {                                                 \
    if (status = check_range(#stem, #field, entry, lo, hi); !status.ok()) return status; \
  }
#define BP_ATTR_RESERVED(stem, field) \
  if (known.field != 0) return unsupported(#stem "_attributes." #field " is not zero: update the plugin");
#define BP_ATTRS_END(stem)                       \
  std::memcpy(out.bytes, &known, sizeof(known)); \
  return {};                                     \
  }
#include <backplane/attributes.def>
#undef BP_ATTRS_BEGIN
#undef BP_ATTR
#undef BP_ATTR_ARRAY
#undef BP_ATTR_RESERVED
#undef BP_ATTRS_END

// Whether the first field of each attribute struct is `axis`.
constexpr bool begins_with_axis(std::initializer_list<std::string_view> fields) { return *fields.begin() == "axis"; }
#define BP_ATTRS_BEGIN(stem) inline constexpr bool kAxis_##stem = begins_with_axis({
#define BP_ATTR(stem, type, field, lo, hi, doc) #field,
#define BP_ATTR_ARRAY(stem, type, field, count, lo, hi, doc) #field,
#define BP_ATTR_RESERVED(stem, field) #field,
#define BP_ATTRS_END(stem) \
  });
#include <backplane/attributes.def>
#undef BP_ATTRS_BEGIN
#undef BP_ATTR
#undef BP_ATTR_ARRAY
#undef BP_ATTR_RESERVED
#undef BP_ATTRS_END
}  // namespace detail

inline constexpr uint16_t kScalarNone = 0;
inline constexpr uint16_t kScalarOut = 0xFFFF;  // the first output's dtype

struct OpInfo {
  uint32_t id = 0;
  const char* name = "unknown";
  uint32_t kind = 0;
  uint32_t inputs_min = 0, inputs_max = 0, outputs_min = 0, outputs_max = 0;
  uint32_t scalars = 0;
  uint16_t scalar_dtype = kScalarNone;
  uint32_t attribute_bytes = 0;  // 0: the operator has none
  Status (*check_attributes)(const void* in, Attributes& out) = nullptr;
  bool has_axis = false;  // the first attribute is the axis that it works along
  uint32_t shape = 0, rule = 0, dtypes = 0;
};

namespace detail {
enum : uint16_t { kScalar_NONE = kScalarNone, kScalar_OUT = kScalarOut };
#define BP_DTYPE_ROW(id, symbol, name, bytes, kind, core) inline constexpr uint16_t kScalar_##symbol = id;
#include <backplane/dtypes.def>
#undef BP_DTYPE_ROW

constexpr std::array<OpInfo, BP_OP_LIMIT> make_ops() {
  std::array<OpInfo, BP_OP_LIMIT> table{};
#define BP_OP_ROW(id, symbol, name, kind, imin, imax, omin, omax, smin, smax, sdtype, attrs, shape, rule, set, i64, \
                  acc, prof, since, doc)                                                                            \
  table[id] = {id,                                                                                                  \
               name,                                                                                                \
               BP_KIND_##kind,                                                                                      \
               imin,                                                                                                \
               imax,                                                                                                \
               omin,                                                                                                \
               omax,                                                                                                \
               smax,                                                                                                \
               kScalar_##sdtype,                                                                                    \
               std::string_view(#attrs) == "no" ? 0u : uint32_t{sizeof(bp_##attrs##_attributes)},                   \
               check_##attrs,                                                                                       \
               kAxis_##attrs,                                                                                       \
               BP_SHAPE_##shape,                                                                                    \
               BP_RULE_##rule,                                                                                      \
               BP_SET_##set};
#include <backplane/ops.def>
#undef BP_OP_ROW
  return table;
}
inline constexpr auto kOps = make_ops();
}  // namespace detail

// Null for an id that the table does not have.
constexpr const OpInfo* find_op(uint32_t id) {
  return id < BP_OP_LIMIT && detail::kOps[id].id != 0 ? &detail::kOps[id] : nullptr;
}
constexpr const char* op_name(uint32_t id) {
  const OpInfo* op = find_op(id);
  return op == nullptr ? "unknown" : op->name;
}

}  // namespace backplane::kit
