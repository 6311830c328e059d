// SPDX-License-Identifier: Apache-2.0
// The directories that are searched for plugins, in order.
//
// search_path or BACKPLANE_PLUGIN_PATH; $XDG_DATA_HOME/backplane/plugins; `backplane/plugins` next
// to this library; `backplane/plugins` below each directory of $XDG_DATA_DIRS. Within a directory,
// manifests are ordered by file name. The working directory and the program's directory are never
// searched. A set-uid program ignores the environment and the user's directories.
#pragma once

#include <string>
#include <vector>

namespace backplane::core {

struct Place {
  std::string path;
  const char* origin;  // "search_path", "user", "system"; static
};

// True in a program with more privileges than its caller.
bool runs_privileged() noexcept;
// The value of the variable; null if it is unset, empty or untrusted.
const char* trusted_environment(const char* name) noexcept;

// `search_path` (may be null) overrides the environment. Each directory appears once, after links
// are resolved.
std::vector<Place> search_places(const char* search_path, bool default_paths);

// $XDG_CONFIG_HOME/backplane/config.json, empty if there is no home.
std::string default_config_file();

// Returns the manifests of a searched path, sorted by name: the *.json files of a directory, or the
// path itself if it is a manifest. Throws Refusal "place.*".
std::vector<std::string> list_manifests(const Place& searched);

}  // namespace backplane::core
