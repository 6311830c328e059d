// SPDX-License-Identifier: Apache-2.0
// Reports of results, as JSON and as self-contained HTML pages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "comparison.hpp"

namespace char_gpt {

using Facts = std::vector<std::pair<std::string, std::string>>;  // name and value

struct TrainingReport {
  Curve curve;                                    // training losses, one per step
  std::vector<std::pair<int64_t, double>> known;  // number of a step, and bits per character of the held-out text
                                                  // after it
  double gzip = 0;                                // bits per character of the held-out text, compressed by `gzip -9`
  double gzip_behind_training = 0;                // like `gzip`, but gzip reads the training text first
  std::string prompt, written;
  Facts facts;
};

struct ComparisonReport {
  std::vector<Curve> curves;            // curves[0] is the reference
  std::vector<Difference> differences;  // differences of curves[1], curves[2], ... from the reference
  Facts facts;

  bool agrees() const;
};

std::string to_json(const TrainingReport& report);
std::string to_json(const ComparisonReport& report);
std::string to_html(const TrainingReport& report);
std::string to_html(const ComparisonReport& report);

// Throws std::runtime_error if `file` cannot be written, as far as the directory shows. Does nothing if the
// path is empty.
void check_writable(const std::filesystem::path& file);
// Writes `text` to `file`. Does nothing if the path is empty.
void write_file(const std::filesystem::path& file, const std::string& text);

}  // namespace char_gpt
