// SPDX-License-Identifier: Apache-2.0
// A cache file that any number of processes may share. Each read validates the file, and each write
// replaces the whole file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace backplane::cache {

// Identifies the device, driver and kernels that a cache is valid for. The name and the header of
// the cache file contain the key.
struct CacheKey {
  uint8_t device[16] = {};
  uint8_t driver[16] = {};
  uint64_t build = 0;
  bool operator==(const CacheKey&) const = default;
};

// Returns the folder that the environment variable `setting` names. If this variable is not set, returns
// $XDG_CACHE_HOME/backplane/PLUGIN, or else $HOME/.cache/backplane/PLUGIN. Returns nothing if `setting` has the value
// `off`, or if none of these variables names a folder.
std::optional<std::string> cache_folder(const char* setting, const char* plugin);

class CacheFile {
 public:
  CacheFile(std::string folder, const CacheKey& key);
  const std::string& path() const { return path_; }

  // Returns the data of the file, or nothing if there is no usable file. If the file exists but is
  // not usable, `objection` states the reason.
  std::vector<std::byte> load(std::string& objection) const;
  // Writes a temporary file and renames it, so that readers see either the old or the new file.
  // Returns the reason for a failure, or an empty string on success.
  std::string store(std::span<const std::byte> data) const;

  // A lock that excludes other processes while this process loads, merges and stores the file. If
  // another process holds the lock for one second, this process continues without the lock.
  class Lock {
   public:
    explicit Lock(const CacheFile& file);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    int folder_;
  };

  // A lock that excludes other threads and processes while this thread computes the data of the file. The files of a
  // folder have independent locks. If another thread holds the lock for a minute, this thread continues without it.
  class ComputeLock {
   public:
    explicit ComputeLock(const CacheFile& file);
    ~ComputeLock();
    ComputeLock(const ComputeLock&) = delete;
    ComputeLock& operator=(const ComputeLock&) = delete;

   private:
    int locks_;
  };

 private:
  std::string folder_;
  CacheKey key_;
  std::string path_;
};

}  // namespace backplane::cache
