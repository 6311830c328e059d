// SPDX-License-Identifier: Apache-2.0
// Names of the ABI's numbers, for the certificate and the command's output.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace backplane::conformance {

std::string op_name(uint32_t op);                    // "operator 77" for an unknown one
std::string dtype_name(uint32_t dtype);              // "" for none
const std::vector<std::string_view>& dtype_names();  // in order of id

const char* device_type_name(uint32_t type);
const char* memory_kind_name(uint32_t kind);
// Names of the bits of a mask: 1 << BP_MEMORY_*, BP_CAP_*, BP_BUILD_*. An unknown bit is "bit 17".
std::vector<std::string> memory_kind_names(uint64_t kinds);
std::vector<std::string> capability_names(uint64_t capabilities);
std::vector<std::string> build_flag_names(uint64_t flags);
std::string version_text(uint32_t version);                       // for example "0.2"
std::optional<uint32_t> version_number(const std::string& text);  // parses the text of version_text

}  // namespace backplane::conformance
