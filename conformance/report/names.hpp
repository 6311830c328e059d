// SPDX-License-Identifier: Apache-2.0
// What numbers of the ABI are called, for people: in the certificate, and in what the command prints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace backplane::conformance {

std::string op_name(uint32_t op);                    // "operator 77" for one that is not in the table
std::string dtype_name(uint32_t dtype);              // "" for none
const std::vector<std::string_view>& dtype_names();  // every row, in order

const char* device_type_name(uint32_t type);
const char* memory_kind_name(uint32_t kind);
// Of masks: of 1 << BP_MEMORY_*, BP_CAP_*, BP_BUILD_*. A bit without a name is "bit 17".
std::vector<std::string> memory_kind_names(uint64_t kinds);
std::vector<std::string> capability_names(uint64_t capabilities);
std::vector<std::string> build_flag_names(uint64_t flags);
std::string version_text(uint32_t version);                       // "0.2"
std::optional<uint32_t> version_number(const std::string& text);  // of that text

}  // namespace backplane::conformance
