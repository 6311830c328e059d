// SPDX-License-Identifier: Apache-2.0
// Files of shapes, which contain the cases of `backplane bench ops`.
// docs/benchmarks.md describes the format.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "op_case.hpp"

namespace tool {

struct BenchCase {
  std::string group;  // the file's name without folder and extension: "resnet50"
  std::string text;   // the line, with single blanks between its words
  OpCase op;

  std::string id() const { return group + "/" + text; }
};

// Parses one file's content. Throws Failure with `path`, the line, the reason and what is legal.
std::vector<BenchCase> parse_shapes(std::string_view content, const std::string& path);
// Reads and parses a file. Throws Failure if it cannot be read.
std::vector<BenchCase> read_shapes(const std::string& path);
// The cases of tools/bench/shapes, which the build embeds.
std::vector<BenchCase> built_in_shapes();

// Whether `filter` is a prefix of `id`, a whole word of it, or a pattern with * that matches it.
bool matches_filter(std::string_view id, const std::string& filter);

}  // namespace tool
