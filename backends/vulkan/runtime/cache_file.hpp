// SPDX-License-Identifier: Apache-2.0
// A file that is a cache: checked when it is read, replaced as a whole when it is written, by any number of processes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace backplane::vulkan {

// What a cache belongs to; part of the file's name and of its header.
struct CacheKey {
  uint8_t device[16] = {};
  uint8_t driver[16] = {};
  uint64_t build = 0;
  bool operator==(const CacheKey&) const = default;
};

// Environment: `off`, or the folder of the cache.
inline constexpr const char* kCacheSetting = "BACKPLANE_VULKAN_CACHE";

// The folder that the environment asks for; without a word of it $XDG_CACHE_HOME/backplane/vulkan, else
// $HOME/.cache/backplane/vulkan. None: there is to be no cache.
std::optional<std::string> cache_folder();

class CacheFile {
 public:
  CacheFile(std::string folder, const CacheKey& key);
  const std::string& path() const { return path_; }

  // The data, empty if there is no file. `objection` says why one that is there is not used; else it stays empty.
  std::vector<std::byte> load(std::string& objection) const;
  // Writes beside and renames, so that readers see the old file or the new one. Why it could not; empty: done.
  std::string store(std::span<const std::byte> data) const;

  // Between two processes that read, merge and store. Waits for another's turn at most a second, then goes on without.
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
