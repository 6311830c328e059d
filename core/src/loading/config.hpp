// SPDX-License-Identifier: Apache-2.0
// The user's config file: {"devices": ["name:0", ...]}, the order in which devices are wanted.
#pragma once

#include <string>
#include <vector>

namespace backplane::core {

struct Config {
  std::string path;                  // empty if there is none
  std::vector<std::string> devices;  // "name" or "name:index"; no paths, so that the file never names code to run
};

// `file` null: the default place, where a missing file is no error. Throws INVALID_ARGUMENT for a malformed one.
Config read_config(const char* file);

}  // namespace backplane::core
