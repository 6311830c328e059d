// SPDX-License-Identifier: Apache-2.0
// Reports the result as one self-contained HTML page.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "data.hpp"
#include "training.hpp"

namespace digits {

using Facts = std::vector<std::pair<std::string, std::string>>;  // name and value

std::string html_report(const Images& test, const Result& result, const Facts& facts);

// Throws std::runtime_error if `file` cannot be written, as far as the directory shows.
void check_writable(const std::filesystem::path& file);
void write_file(const std::filesystem::path& file, const std::string& text);

}  // namespace digits
