// SPDX-License-Identifier: Apache-2.0
// Returns the names of ABI constants for the certificate and the command's output.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace backplane::conformance {

std::string op_name(uint32_t op);                    // "operator 77" if unknown
std::string dtype_name(uint32_t dtype);              // "" if unknown
const std::vector<std::string_view>& dtype_names();  // ordered by dtype id

const char* device_type_name(uint32_t type);
const char* memory_kind_name(uint32_t kind);
// These functions return the names of the bits that are set. The bits are 1 << BP_MEMORY_* in
// `kinds`, BP_CAP_* in `capabilities`, and BP_BUILD_* in `flags`. An unknown bit has a name such as
// "bit 17".
std::vector<std::string> memory_kind_names(uint64_t kinds);
std::vector<std::string> capability_names(uint64_t capabilities);
std::vector<std::string> build_flag_names(uint64_t flags);
std::string version_text(uint32_t version);  // for example "0.2"
// Parses the result of version_text.
std::optional<uint32_t> version_number(const std::string& text);

}  // namespace backplane::conformance
