// SPDX-License-Identifier: Apache-2.0
// Files that the build embeds in the command with embed.py.
#pragma once

#include <string_view>
#include <vector>

namespace tool {

struct EmbeddedFile {
  std::string_view name;  // file name without the folder
  std::string_view text;
};

const std::vector<EmbeddedFile>& skeleton_files();  // files of samples/skeleton_plugin
const std::vector<EmbeddedFile>& queue_files();     // files of samples/queue_plugin
const std::vector<EmbeddedFile>& shape_files();     // files of tools/bench/shapes
const std::vector<EmbeddedFile>& spec_files();      // the file docs/spec/operators.md

}  // namespace tool
