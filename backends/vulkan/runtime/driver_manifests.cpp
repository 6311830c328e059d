// SPDX-License-Identifier: Apache-2.0
#include "runtime/driver_manifests.hpp"

#include <dlfcn.h>

#include <backplane/kit/error.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <vector>

namespace backplane::vulkan {

namespace {

namespace fs = std::filesystem;

std::string variable(const char* name, const std::string& otherwise = "") {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

std::vector<fs::path> paths_in(const std::string& list) {
  std::vector<fs::path> out;
  std::istringstream stream(list);
  for (std::string path; std::getline(stream, path, ':');) {
    if (!path.empty()) out.emplace_back(path);
  }
  return out;
}

// Returns the folders, or the files, in which the loader searches for manifests. Source: "Driver Interface to the
// Vulkan Loader" in the loader's documentation.
std::vector<fs::path> places() {
  const std::string list = variable("VK_DRIVER_FILES", variable("VK_ICD_FILENAMES"));
  if (!list.empty()) return paths_in(list);
  const std::string home = variable("HOME");
  std::string folders = variable("XDG_CONFIG_HOME", home + "/.config");
  folders += ":" + variable("XDG_CONFIG_DIRS", "/etc/xdg") + ":/etc:";
  folders += variable("XDG_DATA_HOME", home + "/.local/share") + ":";
  folders += variable("XDG_DATA_DIRS", "/usr/local/share:/usr/share");
  std::vector<fs::path> out = paths_in(folders);
  for (fs::path& each : out) each /= "vulkan/icd.d";
  return out;
}

std::set<fs::path> manifests() {
  std::set<fs::path> out;
  for (const fs::path& place : places()) {
    std::error_code error;
    if (!fs::is_directory(place, error)) {
      out.insert(place);
      continue;
    }
    for (const auto& entry : fs::directory_iterator(place, error)) {
      if (entry.path().extension() == ".json") out.insert(entry.path());
    }
  }
  return out;
}

}  // namespace

std::string describe_unusable_drivers() {
  static const std::regex kLibrary(R"re("library_path"\s*:\s*"([^"]+)")re");
  std::string out;
  for (const fs::path& manifest : manifests()) {
    std::ifstream file(manifest);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::smatch found;
    if (!std::regex_search(text, found, kLibrary)) continue;
    fs::path library = found[1].str();
    if (library.has_parent_path() && library.is_relative()) library = manifest.parent_path() / library;
    void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* const reason = ::dlerror();
      out += kit::text("; the driver of ", manifest.native(), " cannot be opened: ", reason == nullptr ? "" : reason);
    } else {
      ::dlclose(handle);
    }
  }
  return out;
}

}  // namespace backplane::vulkan
