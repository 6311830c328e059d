// SPDX-License-Identifier: Apache-2.0
// Results as JSON and as self-contained HTML pages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "comparison.hpp"

namespace char_gpt {

using Facts = std::vector<std::pair<std::string, std::string>>;  // name, value

struct TrainingReport {
  Curve curve;                                    // of the text learned from
  std::vector<std::pair<int64_t, double>> known;  // step, bits per character of the held-out text
  double gzip = 0;                                // bits per character of the held-out text by `gzip -9`
  double gzip_behind_training = 0;                // the same, where gzip has read the training text before
  std::string prompt, written;
  Facts facts;
};

struct ComparisonReport {
  std::vector<Curve> curves;            // the first is what the others are compared with
  std::vector<Difference> differences;  // of curves[1], ...
  Facts facts;

  bool agrees() const;
};

std::string to_json(const TrainingReport& report);
std::string to_json(const ComparisonReport& report);
std::string to_html(const TrainingReport& report);
std::string to_html(const ComparisonReport& report);

// Throws std::runtime_error if `file` could not be written, as far as that can be told beforehand; an empty path is fine.
void check_writable(const std::filesystem::path& file);
// Writes nothing if the path is empty.
void write_file(const std::filesystem::path& file, const std::string& text);

}  // namespace char_gpt
