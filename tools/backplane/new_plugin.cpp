// SPDX-License-Identifier: Apache-2.0
// Implements `backplane new NAME`, which writes a plugin project that builds against the installed
// SDK and certifies its operators.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "embedded_file.hpp"
#include "host.hpp"
#include "subcommands.hpp"

namespace tool {
namespace {

namespace fs = std::filesystem;

// The placeholder for the plugin's name in the files of both sample projects. These files use the word only as the
// placeholder.
constexpr std::string_view kSkeletonName = "skeleton";

[[noreturn]] void fail_writing(const fs::path& path, const char* what, int error) {
  throw Failure(kExitFinding, "UNAVAILABLE",
                fmt::format("new: {} cannot be {}: {}; choose another place with --dir", path.string(), what,
                            std::strerror(error)));
}

void check_name(const Session& session, const std::string& name) {
  const bool legal = !name.empty() && name.size() <= 63 &&
                     name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
  if (!legal) fail_usage("new: '{:.80}' is no plugin's name; use 1 to 63 of a-z, 0-9 and _", name);
  const Registry registry = open_registry(session, false);
  for (const bph_candidate& candidate : candidates(registry)) {
    if (name == candidate.name)
      fail_usage("new: a plugin is already named '{}': {}; choose another name", name, candidate.manifest);
  }
}

std::string named(std::string_view text, const std::string& name) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t found = std::min(text.find(kSkeletonName, at), text.size());
    out += text.substr(at, found - at);
    if (found == text.size()) break;
    out += name;
    at = found + kSkeletonName.size();
  }
  return out;
}

// A new project directory. The destructor removes the directory and its files, except after a call of keep().
class Project {
 public:
  explicit Project(const std::string& directory) : directory_(directory) {
    if (mkdir(directory.c_str(), 0777) == 0) return;
    if (errno == EEXIST)
      fail_usage("new: {} exists already, and nothing is overwritten; choose another --dir, or remove it", directory);
    fail_writing(directory_, "made", errno);
  }
  Project(const Project&) = delete;
  Project& operator=(const Project&) = delete;
  ~Project() {
    if (kept_) return;
    std::error_code ignored;
    for (const fs::path& path : written_) fs::remove(path, ignored);
    fs::remove(directory_, ignored);
  }

  void write(std::string_view name, const std::string& text) {
    const fs::path path = directory_ / name;
    written_.push_back(path);
    errno = 0;
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    if (!file) fail_writing(path, "written", errno);
  }
  void keep() { kept_ = true; }

 private:
  fs::path directory_;
  std::vector<fs::path> written_;
  bool kept_ = false;
};

// Quotes a word for a shell.
std::string quoted(const std::string& word) {
  const bool plain = word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+") ==
                     std::string::npos;
  if (plain && !word.empty()) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// Returns the Meson setup command. The command contains the path of the SDK's pkg-config files,
// unless `backplane` is in /usr/bin or /usr/local/bin.
std::string setup_command() {
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error).parent_path();
  const fs::path packages = fs::weakly_canonical(binary / BACKPLANE_PKGCONFIG_FROM_BINDIR, error);
  const bool usual = binary == "/usr/bin" || binary == "/usr/local/bin";
  if (error || usual || !fs::exists(packages / "backplane-plugin.pc", error)) return "meson setup build";
  return "meson setup build --pkg-config-path=" + quoted(packages.string());
}

}  // namespace

int new_plugin(Session& session, const NewOptions& options) {
  check_name(session, options.name);
  const std::string directory = options.directory.empty() ? options.name : options.directory;
  Project project(directory);
  Json files = Json::array();
  std::string listing;
  int64_t total = 0;
  for (const EmbeddedFile& file : options.queue ? queue_files() : skeleton_files()) {
    const std::string text = named(file.text, options.name);
    project.write(file.name, text);
    const int64_t lines = std::count(text.begin(), text.end(), '\n');
    total += lines;
    files.push_back(Json::object({{"name", file.name}, {"lines", lines}}));
    listing += fmt::format("  {:<18} {:>3} lines\n", file.name, lines);
  }
  const std::string next[] = {"cd " + quoted(directory), setup_command(), "meson test -C build"};
  if (session.json) {
    Json document = Session::document("backplane.new");
    document["name"] = options.name;
    document["directory"] = fs::absolute(directory).lexically_normal().string();
    document["files"] = files;
    document["next"] = Json::array();
    for (const std::string& command : next) document["next"].push_back(command);
    session.print(document);
  } else {
    session.print("A plugin named '{}' is in {}, {} lines:\n{}Build it and certify its {}:\n", options.name, directory,
                  total, listing, options.queue ? "operators" : "first operator");
    for (const std::string& command : next) session.print("  {}\n", command);
  }
  project.keep();
  return kExitOk;
}

}  // namespace tool
