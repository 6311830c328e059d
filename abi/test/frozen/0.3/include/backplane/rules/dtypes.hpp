// SPDX-License-Identifier: Apache-2.0
// The dtype table, derived from dtypes.def, and sets of dtypes.
#pragma once

#include <backplane/tensor.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace backplane::rules {

enum class DtypeKind : uint8_t { NONE, BOOL, UINT, INT, FLOAT };

struct DtypeInfo {
  uint32_t id = 0;
  const char* name = "unknown";
  uint32_t bytes = 0;
  DtypeKind kind = DtypeKind::NONE;
  bool core = false;  // true if the CORE profile requires the dtype; otherwise it is an extension
};

namespace detail {
inline constexpr DtypeInfo kDtypeRows[] = {
#define BP_DTYPE_ROW(id, symbol, name, bytes, kind, core) {id, name, bytes, DtypeKind::kind, core != 0},
#include <backplane/dtypes.def>
#undef BP_DTYPE_ROW
};
constexpr std::array<DtypeInfo, BP_DTYPE_LIMIT> make_dtypes() {
  std::array<DtypeInfo, BP_DTYPE_LIMIT> table{};
  for (const DtypeInfo& row : kDtypeRows) table[row.id] = row;
  return table;
}
inline constexpr auto kDtypes = make_dtypes();
constexpr std::array<uint8_t, BP_DTYPE_LIMIT> make_dtype_bytes() {
  std::array<uint8_t, BP_DTYPE_LIMIT> table{};
  for (const DtypeInfo& row : kDtypeRows) table[row.id] = static_cast<uint8_t>(row.bytes);
  return table;
}
inline constexpr auto kDtypeBytes = make_dtype_bytes();
}  // namespace detail

// Returns all rows in the order of their ids.
constexpr std::span<const DtypeInfo> dtype_rows() { return detail::kDtypeRows; }
// Returns null for a number that is not a dtype.
constexpr const DtypeInfo* find_dtype(uint32_t dtype) {
  return dtype < BP_DTYPE_LIMIT && detail::kDtypes[dtype].id != 0 ? &detail::kDtypes[dtype] : nullptr;
}
// Returns 0 for an unknown name.
constexpr uint32_t dtype_by_name(std::string_view name) {
  for (const DtypeInfo& row : detail::kDtypeRows) {
    if (name == row.name) return row.id;
  }
  return 0;
}
constexpr DtypeInfo dtype_info(uint32_t dtype) { return dtype < BP_DTYPE_LIMIT ? detail::kDtypes[dtype] : DtypeInfo{}; }
// Returns the name, such as "f32", or "unknown".
constexpr const char* dtype_name(uint32_t dtype) { return dtype_info(dtype).name; }
// Returns the bytes of an element, or 0 for an unknown dtype. Costs one load.
constexpr uint32_t dtype_bytes(uint32_t dtype) { return dtype < BP_DTYPE_LIMIT ? detail::kDtypeBytes[dtype] : 0; }

// Returns the alignment of an element of `bytes` bytes: the largest power of two that divides
// `bytes`, but at most 8. Returns 1 for 0 bytes.
constexpr uint32_t natural_alignment(uint32_t bytes) {
  const uint32_t lowest = bytes & (~bytes + 1);
  return lowest == 0 ? 1 : lowest < 8 ? lowest : 8;
}
// Returns the mask of the bits that a value of the dtype uses in an immediate or scalar. All other
// bits of the immediate or scalar are zero.
constexpr uint64_t value_mask(uint32_t dtype) {
  const uint32_t bytes = dtype_bytes(dtype);
  return bytes < sizeof(uint64_t) ? (uint64_t{1} << (8 * bytes)) - 1 : UINT64_MAX;
}

// True if the mask `set` of BP_DTYPE_BITs contains `dtype`.
constexpr bool in_set(uint64_t set, uint32_t dtype) { return (set & BP_DTYPE_BIT(dtype)) != 0; }

// Dtypes for which operators compute in f32.
inline constexpr uint64_t kHalves = BP_DTYPE_BIT(BP_F16) | BP_DTYPE_BIT(BP_BF16);
constexpr bool is_half(uint32_t dtype) { return in_set(kHalves, dtype); }
// Returns the set of `dtype` and, if `dtype` is f16 or bf16, f32.
constexpr uint64_t or_f32(uint32_t dtype) { return BP_DTYPE_BIT(dtype) | (is_half(dtype) ? BP_DTYPE_BIT(BP_F32) : 0); }

// Returns the names of the dtypes in `set`, such as "f16, f32".
inline std::string dtype_list(uint64_t set) {
  std::string out;
  for (const DtypeInfo& row : detail::kDtypeRows) {
    if (!in_set(set, row.id)) continue;
    if (!out.empty()) out += ", ";
    out += row.name;
  }
  return out;
}

}  // namespace backplane::rules
