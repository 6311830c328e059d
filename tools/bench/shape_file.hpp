// SPDX-License-Identifier: Apache-2.0
// Files of shapes: the cases that `backplane bench ops` measures. Their format is in docs/benchmarks.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "op_case.hpp"

namespace tool {

struct BenchCase {
  std::string group;  // the file's name without folder and extension: "resnet50"
  std::string text;   // the line, its words with one blank between
  OpCase op;

  std::string id() const { return group + "/" + text; }
};

// The cases of one file's content, in order. Throws Failure with `path`, the line, what is wrong and what is legal.
std::vector<BenchCase> parse_shapes(std::string_view content, const std::string& path);
// The same of a file. Throws Failure where it cannot be read.
std::vector<BenchCase> read_shapes(const std::string& path);
// Those that the build took into the command: tools/bench/shapes.
std::vector<BenchCase> built_in_shapes();

// Whether `filter` is the beginning of `id`, or with * a pattern of it, or a word of it that is whole.
bool matches_filter(std::string_view id, const std::string& filter);

}  // namespace tool
