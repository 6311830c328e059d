// SPDX-License-Identifier: Apache-2.0
// Resolves and reads files that determine which code runs. Refuses a path if another user can write
// to a part of it. Reads never block.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "loading/refusal.hpp"

namespace backplane::core {

// The noun that messages use for one kind of file, and the names of the rules for this kind.
struct FileRuleNames {
  const char* noun;
  const char* missing;
  const char* type;
  const char* permissions;
  const char* size;
  const char* read;
};
inline constexpr FileRuleNames kManifestRules = {
    "manifest", "manifest.missing", "manifest.type", "manifest.permissions", "manifest.size", "manifest.read"};
inline constexpr FileRuleNames kLibraryRules = {
    "library", "library.missing", "library.type", "library.permissions", "library.size", "library.read"};
inline constexpr FileRuleNames kDirectoryRules = {"directory",         "place.missing", "place.type",
                                                  "place.permissions", "place.size",    "place.read"};
inline constexpr FileRuleNames kConfigRules = {"config file",        "config.missing", "config.type",
                                               "config.permissions", "config.size",    "config.read"};

// Maximum size of a path that a candidate can report, including the NUL.
inline constexpr size_t kPathLimit = 1024;

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) noexcept : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&&) = delete;
  ~FileDescriptor();
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

// Resolves `path` component by component to an absolute path without links. Every directory, link and file of the path
// must belong to root or to the effective user. Only the owner may have write permission, except for links and sticky
// directories. Throws Refusal if a part of the path breaks these rules or is missing.
std::string resolve_trusted(std::string_view path, const FileRuleNames& rules);

// Opens a regular file for reading. Never blocks on a FIFO or device. `out_size` receives the size
// in bytes, and may be null.
FileDescriptor open_regular(const std::string& path, const FileRuleNames& rules, uint64_t* out_size);

// Returns the whole file. Throws Refusal if the file has more than `limit` bytes.
std::string read_file(const std::string& path, const FileRuleNames& rules, size_t limit);

// Reads `bytes` bytes at `offset` into `buffer`. Returns the number of bytes read, which is less
// than `bytes` at the end of the file.
size_t read_at(const FileDescriptor& file, void* buffer, size_t bytes, uint64_t offset, const std::string& path,
               const FileRuleNames& rules);

}  // namespace backplane::core
