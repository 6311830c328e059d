// SPDX-License-Identifier: Apache-2.0
// Computes SHA-256 digests in hexadecimal, unless the function's name states another encoding.
#pragma once

#include <string>
#include <string_view>

namespace backplane::conformance {

std::string sha256(std::string_view bytes);
std::string sha256_base64(std::string_view bytes);  // for the Content-Security-Policy of the HTML page
// Throws std::runtime_error if the file cannot be read.
std::string sha256_of_file(const std::string& path);

}  // namespace backplane::conformance
