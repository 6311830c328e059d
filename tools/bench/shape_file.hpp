// SPDX-License-Identifier: Apache-2.0
// Shape files contain the cases of `backplane bench ops`. docs/benchmarks.md describes their
// format.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "op_case.hpp"

namespace tool {

struct BenchCase {
  std::string group;  // name of the file without folder and extension: "resnet50"
  std::string text;   // the line, with one space between words
  OpCase op;

  std::string id() const { return group + "/" + text; }
};

// Parses the content of a file. Throws Failure with `path`, the line, the reason and the permitted
// values.
std::vector<BenchCase> parse_shapes(std::string_view content, const std::string& path);
// Reads and parses a file. Throws Failure if this fails.
std::vector<BenchCase> read_shapes(const std::string& path);
// Returns the cases of tools/bench/shapes, which the build embeds.
std::vector<BenchCase> built_in_shapes();

// Returns true if `filter` is a prefix of `id`, equals a whole word of `id`, or is a pattern with * that matches `id`.
bool matches_filter(std::string_view id, const std::string& filter);

}  // namespace tool
