// SPDX-License-Identifier: Apache-2.0
// The dtype table as data, derived from dtypes.def.
#pragma once

#include <backplane/tensor.h>

#include <array>
#include <cstdint>
#include <string>

namespace backplane::rules {

struct DtypeInfo {
  const char* name = "unknown";
  uint32_t bytes = 0;
};

namespace detail {
constexpr std::array<DtypeInfo, BP_DTYPE_LIMIT> make_dtypes() {
  std::array<DtypeInfo, BP_DTYPE_LIMIT> table{};
#define BP_DTYPE_ROW(id, symbol, name, bytes, kind, core) table[id] = {name, bytes};
#include <backplane/dtypes.def>
#undef BP_DTYPE_ROW
  return table;
}
inline constexpr auto kDtypes = make_dtypes();
}  // namespace detail

constexpr DtypeInfo dtype_info(uint32_t dtype) { return dtype < BP_DTYPE_LIMIT ? detail::kDtypes[dtype] : DtypeInfo{}; }
constexpr const char* dtype_name(uint32_t dtype) { return dtype_info(dtype).name; }
constexpr uint32_t dtype_bytes(uint32_t dtype) { return dtype_info(dtype).bytes; }
// Whether the mask `set` of BP_DTYPE_BITs holds `dtype`.
constexpr bool in_set(uint32_t set, uint32_t dtype) {
  return dtype < BP_DTYPE_LIMIT && (set & BP_DTYPE_BIT(dtype)) != 0;
}
// "f16, f32"
inline std::string dtype_list(uint32_t set) {
  std::string out;
  for (uint32_t dtype = 0; dtype < BP_DTYPE_LIMIT; ++dtype) {
    if (!in_set(set, dtype)) continue;
    if (!out.empty()) out += ", ";
    out += dtype_name(dtype);
  }
  return out;
}

}  // namespace backplane::rules
