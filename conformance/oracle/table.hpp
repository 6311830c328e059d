// SPDX-License-Identifier: Apache-2.0
// The operator table as data, accuracy column included: the one table of tolerances, keyed by operator and dtype.
#pragma once

#include <cstdint>
#include <string_view>

#include <backplane/plugin.h>

namespace bp::conformance::oracle {

// E exact, R correctly rounded, U at most `ulps`, S sum, D dot product, C the composite's own.
struct Accuracy {
  char letter;
  double ulps;
};

struct Operator {
  uint32_t id;
  std::string_view name;
  uint32_t kind;  // BP_KIND_*
  uint32_t inputs_min, inputs_max, outputs_min, outputs_max;
  uint32_t scalars;
  bool has_attributes;
  uint32_t shape_rule, dtype_rule, dtypes;
  Accuracy accuracy;
  uint32_t profile;
  std::string_view doc;
};

namespace rows {

inline constexpr Accuracy E{'E', 0}, R{'R', 0}, S{'S', 0}, D{'D', 0}, C{'C', 0};
constexpr Accuracy U(double ulps) { return {'U', ulps}; }

inline constexpr Operator all[] = {
#define BP_OP_ROW(id, symbol, name, kind, imin, imax, omin, omax, smin, smax, sdtype, attrs, shape, rule, dtypes, i64, \
                  acc, prof, since, doc)                                                                               \
  {id,                                                                                                                 \
   name,                                                                                                               \
   BP_KIND_##kind,                                                                                                     \
   imin,                                                                                                               \
   imax,                                                                                                               \
   omin,                                                                                                               \
   omax,                                                                                                               \
   smax,                                                                                                               \
   std::string_view(#attrs) != "no",                                                                                   \
   BP_SHAPE_##shape,                                                                                                   \
   BP_RULE_##rule,                                                                                                     \
   BP_SET_##dtypes,                                                                                                    \
   acc,                                                                                                                \
   BP_PROFILE_##prof,                                                                                                  \
   doc},
#include <backplane/ops.def>
#undef BP_OP_ROW
};

}  // namespace rows

// Null where there is no such operator.
constexpr const Operator* operator_of(uint32_t id) {
  for (const Operator& row : rows::all) {
    if (row.id == id) return &row;
  }
  return nullptr;
}

}  // namespace bp::conformance::oracle
