// SPDX-License-Identifier: Apache-2.0
// Where plugins are looked for, in which order.
//
// search_path or BACKPLANE_PLUGIN_PATH; $XDG_DATA_HOME/backplane/plugins; `backplane/plugins` beside this library; then
// backplane/plugins of each $XDG_DATA_DIRS. In a directory by file name. Never the working directory or the program's
// own. In a set-uid program the environment and the user's places do not count.
#pragma once

#include <string>
#include <vector>

namespace backplane::core {

struct Place {
  std::string path;
  const char* origin;  // "search_path", "user", "system"; static
};

// True in a program with more rights than its caller.
bool runs_privileged() noexcept;
// The variable, null if it is unset, empty or not to be trusted.
const char* trusted_environment(const char* name) noexcept;

// `search_path` (may be null) wins over the environment. Each real directory once.
std::vector<Place> search_places(const char* search_path, bool default_paths);

// $XDG_CONFIG_HOME/backplane/config.json, empty if there is no home.
std::string default_config_file();

// The manifests of a place, sorted by name: its files *.json, or the place itself if that is a manifest.
// Throws Refusal "place.*".
std::vector<std::string> list_manifests(const Place& place);

}  // namespace backplane::core
