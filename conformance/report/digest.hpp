// SPDX-License-Identifier: Apache-2.0
// SHA-256, in hexadecimal unless the name says otherwise.
#pragma once

#include <string>
#include <string_view>

namespace backplane::conformance {

std::string sha256(std::string_view bytes);
std::string sha256_base64(std::string_view bytes);    // for a page's content security policy
std::string sha256_of_file(const std::string& path);  // throws std::runtime_error

}  // namespace backplane::conformance
