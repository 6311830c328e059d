// SPDX-License-Identifier: Apache-2.0
// The files of samples/skeleton_plugin, which the build takes into the command.
#pragma once

#include <string_view>
#include <vector>

namespace tool {

struct SkeletonFile {
  std::string_view name;
  std::string_view text;
};
const std::vector<SkeletonFile>& skeleton_files();

// What stands for the plugin's name in each of them, and nowhere else.
inline constexpr std::string_view skeleton_name = "skeleton";

}  // namespace tool
