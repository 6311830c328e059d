// SPDX-License-Identifier: Apache-2.0
#include "plugin_library.hpp"

#include <filesystem>

#include "host.hpp"

namespace tool {

namespace fs = std::filesystem;

std::string library_of(const Session& session, const std::string& subcommand, const std::string& plugin) {
  if (plugin.find('/') != std::string::npos || plugin.ends_with(".so")) {
    std::error_code error;
    const fs::path path = fs::canonical(plugin, error);
    if (error)
      fail_usage("{}: {} cannot be opened: {}; name a plugin's library or a plugin", subcommand, plugin,
                 error.message());
    if (!fs::is_regular_file(path)) fail_usage("{}: {} is no file; name a plugin's library", subcommand, plugin);
    return path.string();
  }
  const Registry registry = open_registry(session, false);
  std::string names;
  for (const bph_candidate& candidate : candidates(registry)) {
    if (candidate.shadowed == 0 && plugin == candidate.name && candidate.library[0] != '\0')
      return fs::canonical(candidate.library).string();
    if (candidate.name[0] != '\0') names += fmt::format("{}{}", names.empty() ? "" : ", ", candidate.name);
  }
  fail_usage("{}: no plugin is named '{}'; found: {}; give the path of its library, or see: backplane doctor",
             subcommand, plugin, names.empty() ? "none" : names);
}

}  // namespace tool
