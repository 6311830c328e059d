// SPDX-License-Identifier: Apache-2.0
#include "names.hpp"

#include <backplane/plugin.h>
#include <fmt/format.h>
#include <backplane/rules/op_table.hpp>

#include <charconv>
#include <span>

#include "harness/plugin.hpp"

namespace backplane::conformance {

namespace {

namespace rules = backplane::rules;

std::vector<std::string> names_of(uint64_t mask, std::span<const char* const> names) {
  std::vector<std::string> set;
  for (size_t bit = 0; bit < 64; ++bit) {
    if ((mask >> bit & 1) != 0) set.push_back(bit < names.size() ? names[bit] : fmt::format("bit {}", bit));
  }
  return set;
}

}  // namespace

const std::vector<std::string_view>& dtype_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> made;
    for (const rules::DtypeInfo& row : rules::dtype_rows()) made.push_back(row.name);
    return made;
  }();
  return names;
}

std::string op_name(uint32_t op) {
  const rules::OpInfo* row = rules::find_op(op);
  return row == nullptr ? fmt::format("operator {}", op) : row->name;
}

std::string dtype_name(uint32_t dtype) { return rules::find_dtype(dtype) == nullptr ? "" : rules::dtype_name(dtype); }

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

const char* memory_kind_name(uint32_t kind) { return kind < BP_MEMORY_KINDS ? kMemoryKindNames[kind] : "unknown"; }

std::vector<std::string> memory_kind_names(uint64_t kinds) { return names_of(kinds, kMemoryKindNames); }

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

std::optional<uint32_t> version_number(const std::string& text) {
  uint32_t parts[2] = {};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (uint32_t& part : parts) {
    const auto [parsed_end, error] = std::from_chars(at, end, part);
    if (error != std::errc() || part > 0xffff) return std::nullopt;
    at = parsed_end;
    if (&part == &parts[0] && (at == end || *at++ != '.')) return std::nullopt;
  }
  const uint32_t version = parts[0] << 16 | parts[1];
  return at == end && version_text(version) == text ? std::optional(version) : std::nullopt;
}

}  // namespace backplane::conformance
