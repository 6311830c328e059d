// SPDX-License-Identifier: Apache-2.0
// A cache in a file, for any number of processes. Reads check the file, and writes replace it as a
// whole.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace backplane::vulkan {

// Identifies the device, driver and shaders that a cache is valid for. The key is part of the
// file's name and of its header.
struct CacheKey {
  uint8_t device[16] = {};
  uint8_t driver[16] = {};
  uint64_t build = 0;
  bool operator==(const CacheKey&) const = default;
};

// Environment variable: `off`, or the folder of the cache.
inline constexpr const char* kCacheSetting = "BACKPLANE_VULKAN_CACHE";

// The folder that the environment requests; by default $XDG_CACHE_HOME/backplane/vulkan, else
// $HOME/.cache/backplane/vulkan. None if the cache is off.
std::optional<std::string> cache_folder();

class CacheFile {
 public:
  CacheFile(std::string folder, const CacheKey& key);
  const std::string& path() const { return path_; }

  // The data; empty if there is no usable file. `objection` explains why an existing file is not
  // used.
  std::vector<std::byte> load(std::string& objection) const;
  // Writes a temporary file and renames it, so that readers see either the old file or the new one.
  // Returns the reason of a failure; empty on success.
  std::string store(std::span<const std::byte> data) const;

  // Excludes other processes while this one reads, merges and stores. After waiting for one second,
  // the process continues without the lock.
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
