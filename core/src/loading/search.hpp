// SPDX-License-Identifier: Apache-2.0
// The directories that are searched for plugins.
//
// The search order is: search_path or BACKPLANE_PLUGIN_PATH; $XDG_DATA_HOME/backplane/plugins;
// `backplane/plugins` next to this library; `backplane/plugins` below each directory of
// $XDG_DATA_DIRS. Within a directory, manifests are ordered by file name. The working directory and
// the program's directory are never searched. A set-uid program ignores the environment and the
// user's directories.
#pragma once

#include <string>
#include <vector>

namespace backplane::core {

struct Place {
  std::string path;
  const char* origin;  // static string: "search_path", "user" or "system"
};

// Returns true if the program has more privileges than the user who started it.
bool runs_privileged() noexcept;
// Returns the value of an environment variable, or null if the variable is unset or empty, or if
// the program is privileged.
const char* trusted_environment(const char* name) noexcept;

// Returns the directories to search. `search_path` overrides the environment unless it is null.
// Each directory appears once, even if several paths lead to it.
std::vector<Place> search_places(const char* search_path, bool default_paths);

// Returns $XDG_CONFIG_HOME/backplane/config.json, or an empty string if there is no home directory.
std::string default_config_file();

// Returns the manifests at `searched`, sorted by name: the *.json files if `searched` is a
// directory, or `searched` itself if it is a manifest. Throws Refusal "place.*".
std::vector<std::string> list_manifests(const Place& searched);
// Returns the files libbackplane_*.so in the directory `searched`, sorted by name, or nothing if the directory
// cannot be listed.
std::vector<std::string> list_libraries(const Place& searched);

}  // namespace backplane::core
