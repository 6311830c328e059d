// SPDX-License-Identifier: Apache-2.0
// Collects the search directories from the environment and from the directory of this library.
#include "loading/search.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "loading/file.hpp"

namespace backplane::core {

namespace {

constexpr const char* kSubfolder = "/backplane/plugins";
constexpr size_t kManifestsLimit = 1024;  // maximum number of manifests per directory

void split(std::string_view list, const char* suffix, const char* origin, std::vector<Place>& out) {
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find(':'));
    list.remove_prefix(std::min(entry.size() + 1, list.size()));
    if (!entry.empty()) out.push_back({std::string(entry) + suffix, origin});
  }
}

// Returns an absolute XDG base directory: the variable's value, or `fallback` in the home
// directory. Returns an empty string if there is neither.
std::string xdg_base(const char* variable, const char* fallback) {
  const char* value = trusted_environment(variable);
  if (value != nullptr && value[0] == '/') return value;
  const char* home = trusted_environment("HOME");
  return home != nullptr && home[0] == '/' ? std::string(home) + fallback : std::string();
}

std::string manifests_of_this_library() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&runs_privileged), &info) == 0 || info.dli_fname == nullptr) return {};
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(info.dli_fname, nullptr), &std::free);
  if (real == nullptr) return {};
  const std::string_view path = real.get();
  return std::string(path.substr(0, path.rfind('/'))) + kSubfolder;
}

}  // namespace

bool runs_privileged() noexcept { return getauxval(AT_SECURE) != 0; }

const char* trusted_environment(const char* name) noexcept {
  if (runs_privileged()) return nullptr;
  const char* value = std::getenv(name);
  return value != nullptr && value[0] != '\0' ? value : nullptr;
}

std::string default_config_file() {
  const std::string base = xdg_base("XDG_CONFIG_HOME", "/.config");
  return base.empty() ? base : base + "/backplane/config.json";
}

std::vector<Place> search_places(const char* search_path, bool default_paths) {
  std::vector<Place> paths;
  const char* listed = search_path != nullptr ? search_path : trusted_environment("BACKPLANE_PLUGIN_PATH");
  if (listed != nullptr) split(listed, "", "search_path", paths);
  if (default_paths) {
    const std::string data_home = xdg_base("XDG_DATA_HOME", "/.local/share");
    if (!data_home.empty()) paths.push_back({data_home + kSubfolder, "user"});
    const std::string library_manifests = manifests_of_this_library();
    if (!library_manifests.empty()) paths.push_back({library_manifests, "system"});
    const char* data_directories = trusted_environment("XDG_DATA_DIRS");
    split(data_directories != nullptr ? data_directories : "/usr/local/share:/usr/share", kSubfolder, "system", paths);
  }

  std::vector<std::pair<dev_t, ino_t>> seen;
  std::erase_if(paths, [&](const Place& searched) {
    if (searched.path[0] != '/' && searched.origin != std::string_view("search_path")) return true;
    struct stat status;
    if (stat(searched.path.c_str(), &status) != 0) return false;
    const std::pair<dev_t, ino_t> identity(status.st_dev, status.st_ino);
    if (std::find(seen.begin(), seen.end(), identity) != seen.end()) return true;
    seen.push_back(identity);
    return false;
  });
  return paths;
}

std::vector<std::string> list_manifests(const Place& searched) {
  struct stat status;
  if (lstat(searched.path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode) && searched.path.ends_with(".json") &&
      searched.origin == std::string_view("search_path")) {
    return {searched.path};
  }
  const std::string resolved = resolve_trusted(searched.path, kDirectoryRules);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(resolved.c_str()), &closedir);
  if (directory == nullptr) {
    if (errno == ENOMEM) throw std::bad_alloc();
    if (errno == ENOTDIR) {
      throw Refusal(BP_INVALID_ARGUMENT, "place.type", "user",
                    "{}: neither a directory nor a manifest (*.json); correct the search path", shown(searched.path));
    }
    throw Refusal(BP_UNAVAILABLE, "place.read", "system", "{}: cannot list the directory (error {}); make it readable",
                  shown(searched.path), errno);
  }
  std::vector<std::string> manifests;
  while (const dirent* entry = readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (!name.ends_with(".json") || name.starts_with(".")) continue;
    if (manifests.size() == kManifestsLimit) {
      throw Refusal(BP_INVALID_ARGUMENT, "place.size", "user", "{}: more than {} manifests; split the directory",
                    shown(searched.path), kManifestsLimit);
    }
    manifests.push_back(resolved + "/" + std::string(name));
  }
  std::sort(manifests.begin(), manifests.end());
  return manifests;
}

std::vector<std::string> list_libraries(const Place& searched) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(searched.path.c_str()), &closedir);
  std::vector<std::string> libraries;
  if (directory == nullptr) return libraries;
  while (const dirent* entry = readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with("libbackplane_") || !name.ends_with(".so") || libraries.size() == kManifestsLimit) continue;
    libraries.push_back(searched.path + "/" + std::string(name));
  }
  std::sort(libraries.begin(), libraries.end());
  return libraries;
}

}  // namespace backplane::core
