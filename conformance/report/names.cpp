// SPDX-License-Identifier: Apache-2.0
#include "names.hpp"

#include <backplane/plugin.h>
#include <fmt/format.h>

#include <span>

#include "oracle/table.hpp"

namespace bp::conformance {

namespace {

std::vector<std::string> names_of(uint64_t mask, std::span<const char* const> names) {
  std::vector<std::string> set;
  for (size_t bit = 0; bit < 64; ++bit) {
    if ((mask >> bit & 1) != 0) set.push_back(bit < names.size() ? names[bit] : fmt::format("bit {}", bit));
  }
  return set;
}

constexpr const char* memory_kinds[BP_MEMORY_KINDS] = {"device", "host", "shared"};

}  // namespace

const std::vector<std::string_view>& dtype_names() {
  static const std::vector<std::string_view> names = {
#define BP_DTYPE_ROW(id, symbol, name, ...) name,
#include <backplane/dtypes.def>
#undef BP_DTYPE_ROW
  };
  return names;
}

std::string op_name(uint32_t op) {
  for (const oracle::Operator& row : oracle::rows::all) {
    if (row.id == op) return std::string(row.name);
  }
  return fmt::format("operator {}", op);
}

std::string dtype_name(uint32_t dtype) {
  switch (dtype) {
#define BP_DTYPE_ROW(id, symbol, name, ...) \
  case id:                                  \
    return name;
#include <backplane/dtypes.def>
#undef BP_DTYPE_ROW
    default:
      return "";
  }
}

const char* device_type_name(uint32_t type) {
  switch (type) {
    case BP_DEVICE_CPU:
      return "cpu";
    case BP_DEVICE_GPU:
      return "gpu";
    case BP_DEVICE_NPU:
      return "npu";
    default:
      return "other";
  }
}

const char* memory_kind_name(uint32_t kind) { return kind < BP_MEMORY_KINDS ? memory_kinds[kind] : "unknown"; }

std::vector<std::string> memory_kind_names(uint64_t kinds) { return names_of(kinds, memory_kinds); }

std::vector<std::string> capability_names(uint64_t capabilities) {
  static constexpr const char* names[] = {"synchronous", "host_operands",  "ftz_f32",          "deterministic",
                                          "timing",      "unified_memory", "process_addresses"};
  return names_of(capabilities, names);
}

std::vector<std::string> build_flag_names(uint64_t flags) {
  static constexpr const char* names[] = {"debug", "asan", "tsan", "ubsan"};
  return names_of(flags, names);
}

std::string version_text(uint32_t version) { return fmt::format("{}.{}", version >> 16, version & 0xffff); }

}  // namespace bp::conformance
