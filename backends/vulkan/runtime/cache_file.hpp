// SPDX-License-Identifier: Apache-2.0
// A cache file that any number of processes may share. Each read validates the file, and each write
// replaces the whole file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace backplane::vulkan {

// Identifies the device, driver and shaders that a cache is valid for. The name and the header of
// the cache file contain the key.
struct CacheKey {
  uint8_t device[16] = {};
  uint8_t driver[16] = {};
  uint64_t build = 0;
  bool operator==(const CacheKey&) const = default;
};

// Environment variable. Its value is the folder of the cache, or `off` to disable the cache.
inline constexpr const char* kCacheSetting = "BACKPLANE_VULKAN_CACHE";

// Returns the folder that kCacheSetting names. If kCacheSetting is not set, returns
// $XDG_CACHE_HOME/backplane/vulkan, or else $HOME/.cache/backplane/vulkan. Returns nothing if
// kCacheSetting is `off`, or if none of these variables names a folder.
std::optional<std::string> cache_folder();

class CacheFile {
 public:
  CacheFile(std::string folder, const CacheKey& key);
  const std::string& path() const { return path_; }

  // Returns the data of the file, or nothing if there is no usable file. If the file exists but is
  // not usable, `objection` says why.
  std::vector<std::byte> load(std::string& objection) const;
  // Writes a temporary file and renames it, so that readers see either the old file or the new one.
  // Returns the reason for a failure, or an empty string on success.
  std::string store(std::span<const std::byte> data) const;

  // A lock that excludes other processes while this process reads, merges and stores the file. If
  // the lock is not free within one second, the process continues without the lock.
  class Lock {
   public:
    explicit Lock(const CacheFile& file);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    int folder_;
  };

 private:
  std::string folder_;
  CacheKey key_;
  std::string path_;
};

}  // namespace backplane::vulkan
