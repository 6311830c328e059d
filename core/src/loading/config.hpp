// SPDX-License-Identifier: Apache-2.0
// The user's config file, such as {"devices": ["name:0", ...]}. The file lists devices in order of
// preference.
#pragma once

#include <string>
#include <vector>

namespace backplane::core {

struct Config {
  std::string path;  // empty if there is no config file
  // Each entry is "name" or "name:index". An entry is never a path, so the file cannot select code
  // to run.
  std::vector<std::string> devices;
};

// If `file` is null, reads the default file, which may be missing. Throws INVALID_ARGUMENT if the
// file is malformed.
Config read_config(const char* file);

}  // namespace backplane::core
