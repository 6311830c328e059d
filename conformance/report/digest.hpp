// SPDX-License-Identifier: Apache-2.0
// SHA-256, in hexadecimal where nothing else is said.
#pragma once

#include <string>
#include <string_view>

namespace backplane::conformance {

std::string sha256(std::string_view bytes);
std::string sha256_base64(std::string_view bytes);    // as a page's security policy names a script
std::string sha256_of_file(const std::string& path);  // throws std::runtime_error with path and reason

}  // namespace backplane::conformance
