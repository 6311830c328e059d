// SPDX-License-Identifier: Apache-2.0
// Resolves paths component by component and reads small files.
#include "loading/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <system_error>

namespace backplane::core {

namespace {

constexpr int kLinkLimit = 40;  // the Linux kernel's limit for symbolic links in a path

std::string reason(int code) { return std::generic_category().message(code); }

[[noreturn]] void fail_open(const std::string& path, const FileRuleNames& rules, int code) {
  if (code == ENOMEM) throw std::bad_alloc();
  if (code == ENOENT || code == ENOTDIR) {
    throw Refusal(BP_UNAVAILABLE, rules.missing, "user", "{}: no such {}; correct the path or install it", shown(path),
                  rules.noun);
  }
  throw Refusal(BP_UNAVAILABLE, rules.read, "system", "{}: cannot read the {}: {}; make it readable, then try again",
                shown(path), rules.noun, reason(code));
}

void check_owner(const std::string& path, const struct stat& status, const FileRuleNames& rules) {
  if (status.st_uid != 0 && status.st_uid != geteuid()) {
    throw Refusal(
        BP_INVALID_ARGUMENT, rules.permissions, "system",
        "{}: belongs to user {}, neither to root nor to you ({}), on the way to a {}; chown it, or move the {}",
        shown(path), status.st_uid, geteuid(), rules.noun, rules.noun);
  }
}

void check_mode(const std::string& path, const struct stat& status, const FileRuleNames& rules) {
  const bool sticky_directory = S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0;
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !sticky_directory) {
    throw Refusal(BP_INVALID_ARGUMENT, rules.permissions, "system",
                  "{}: mode {:04o} lets others than its owner write it, and so decide what the {} does; chmod go-w it",
                  shown(path), status.st_mode & 07777u, rules.noun);
  }
}

std::string read_link(const std::string& path, const FileRuleNames& rules) {
  std::string target(PATH_MAX, '\0');
  const ssize_t length = readlink(path.c_str(), target.data(), target.size());
  if (length < 0) fail_open(path, rules, errno);
  target.resize(static_cast<size_t>(length));
  return target;
}

std::string absolute(std::string_view path, const FileRuleNames& rules) {
  if (path.substr(0, 1) == "/") return std::string(path);
  char directory[PATH_MAX];
  if (getcwd(directory, sizeof(directory)) == nullptr) fail_open(std::string(path), rules, errno);
  return std::string(directory).append("/").append(path);
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

std::string resolve_trusted(std::string_view path, const FileRuleNames& rules) {
  std::string remaining = absolute(path, rules);
  std::string resolved = "/";
  struct stat status;
  if (lstat("/", &status) != 0) fail_open("/", rules, errno);
  check_owner("/", status, rules);
  check_mode("/", status, rules);
  int links = 0;
  while (!remaining.empty()) {
    const size_t slash = remaining.find('/');
    const std::string step = remaining.substr(0, slash);
    remaining.erase(0, slash == std::string::npos ? remaining.size() : slash + 1);
    if (step.empty() || step == ".") continue;
    if (step == "..") {
      resolved.resize(std::max<size_t>(resolved.rfind('/'), 1));
      continue;
    }
    std::string next = resolved;
    if (next.size() > 1) next += '/';
    next += step;
    if (next.size() >= kPathLimit) {
      throw Refusal(BP_INVALID_ARGUMENT, rules.missing, "user", "{}: the path has more than {} bytes; move the {}",
                    shown(next), kPathLimit - 1, rules.noun);
    }
    if (lstat(next.c_str(), &status) != 0) fail_open(next, rules, errno);
    check_owner(next, status, rules);
    if (S_ISLNK(status.st_mode)) {
      if (++links > kLinkLimit) fail_open(next, rules, ELOOP);
      const std::string target = read_link(next, rules);
      if (target.substr(0, 1) == "/") resolved.resize(1);
      remaining.insert(0, 1, '/').insert(0, target);
      continue;
    }
    check_mode(next, status, rules);
    resolved = std::move(next);
  }
  return resolved;
}

FileDescriptor open_regular(const std::string& path, const FileRuleNames& rules, uint64_t* out_size) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) fail_open(path, rules, errno);
  const auto check_type = [&] {
    if (!S_ISREG(status.st_mode)) {
      throw Refusal(BP_INVALID_ARGUMENT, rules.type, "user", "{}: not a regular file; a {} is one", shown(path),
                    rules.noun);
    }
  };
  check_type();  // checked before open, because opening a device file may have side effects
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (file.get() < 0) fail_open(path, rules, errno);
  if (fstat(file.get(), &status) != 0) fail_open(path, rules, errno);
  check_type();
  if (out_size != nullptr) *out_size = static_cast<uint64_t>(status.st_size);
  return file;
}

size_t read_at(const FileDescriptor& file, void* buffer, size_t bytes, uint64_t offset, const std::string& path,
               const FileRuleNames& rules) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        pread(file.get(), static_cast<char*>(buffer) + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_open(path, rules, errno);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

std::string read_file(const std::string& path, const FileRuleNames& rules, size_t limit) {
  uint64_t size = 0;
  const FileDescriptor file = open_regular(path, rules, &size);
  if (size > limit) {
    throw Refusal(BP_INVALID_ARGUMENT, rules.size, "user", "{}: {} bytes, a {} has at most {}; shorten it", shown(path),
                  size, rules.noun, limit);
  }
  std::string text(static_cast<size_t>(size), '\0');
  text.resize(read_at(file, text.data(), text.size(), 0, path, rules));
  return text;
}

}  // namespace backplane::core
