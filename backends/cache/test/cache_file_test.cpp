// SPDX-License-Identifier: Apache-2.0
#include "cache_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

namespace backplane::cache::test {

namespace {

namespace fs = std::filesystem;

CacheKey key_of(uint8_t device, uint8_t driver, uint64_t build) {
  CacheKey key{.build = build};
  key.device[0] = device;
  key.driver[15] = driver;
  return key;
}

std::vector<std::byte> bytes_of(std::size_t count, int seed) {
  std::vector<std::byte> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::byte>(i * 31 + static_cast<std::size_t>(seed));
  return out;
}

class CacheFiles : public testing::Test {
 protected:
  CacheFiles() {
    std::string pattern = testing::TempDir() + "backplane_cache_XXXXXX";
    folder = ::mkdtemp(pattern.data());
  }
  ~CacheFiles() override { fs::remove_all(folder); }

  std::string objection(const CacheFile& file) {
    std::string said;
    EXPECT_TRUE(file.load(said).empty());
    return said;
  }
  static void damage(const CacheFile& file, int64_t at) {
    std::fstream stream(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(at);
    const auto byte = static_cast<char>(stream.get() ^ 0x55);
    stream.seekp(at);
    stream.put(byte);
  }

  std::string folder;
  const CacheKey key = key_of(1, 2, 3);
};

TEST_F(CacheFiles, OneThreadAtATimeComputesTheDataOfAFile) {
  const CacheFile file(folder, key), other(folder, key_of(1, 2, 300));
  auto first = std::make_unique<CacheFile::ComputeLock>(file);
  const auto begin = std::chrono::steady_clock::now();
  { const CacheFile::ComputeLock of_another_file(other); }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10)) << "another file has its own lock";
  std::atomic<bool> has_ended = false;
  std::thread second([&] {
    const CacheFile::ComputeLock lock(file);
    EXPECT_TRUE(has_ended);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  has_ended = true;
  first.reset();
  second.join();
}

// A process that dies gives its lock back.
TEST_F(CacheFiles, ADeadProcessHoldsNoLock) {
  const CacheFile file(folder, key);
  const pid_t child = ::fork();
  if (child == 0) {
    const CacheFile::ComputeLock lock(file);
    ::raise(SIGKILL);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const auto begin = std::chrono::steady_clock::now();
  { const CacheFile::ComputeLock lock(file); }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST_F(CacheFiles, StoredDataIsLoaded) {
  const CacheFile file(folder + "/made/when/needed", key);
  std::string said;
  EXPECT_TRUE(file.load(said).empty());
  EXPECT_EQ(said, "");  // a missing file is not reported
  for (const std::size_t size : {1000u, 5u, 70000u}) {
    const auto data = bytes_of(size, 7);
    EXPECT_EQ(file.store(data), "");
    EXPECT_EQ(file.load(said), data);
    EXPECT_EQ(said, "");
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder + "/made/when/needed"), {}), 1) << "no other file remains";
  struct stat about {};
  ASSERT_EQ(::stat((folder + "/made").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777u, 0700u);
}

TEST_F(CacheFiles, EachKeyHasItsOwn) {
  const CacheFile file(folder, key);
  for (const CacheKey& other : {key_of(9, 2, 3), key_of(1, 9, 3), key_of(1, 2, 9)})
    EXPECT_NE(CacheFile(folder, other).path(), file.path());
}

TEST_F(CacheFiles, AForeignFileIsNotUsed) {
  const CacheFile file(folder, key), other(folder, key_of(1, 2, 4));
  ASSERT_EQ(other.store(bytes_of(100, 1)), "");
  fs::copy_file(other.path(), file.path());
  EXPECT_THAT(objection(file), testing::HasSubstr("another device, driver or build"));
}

TEST_F(CacheFiles, EveryDamagedByteIsFound) {
  const CacheFile file(folder, key);
  ASSERT_EQ(file.store(bytes_of(100, 1)), "");
  const auto size = static_cast<int64_t>(fs::file_size(file.path()));
  for (int64_t at = 0; at < size; ++at) {
    damage(file, at);
    EXPECT_NE(objection(file), "") << at;
    damage(file, at);
  }
  std::string said;
  EXPECT_EQ(file.load(said), bytes_of(100, 1));
}

TEST_F(CacheFiles, EveryTruncationIsFound) {
  const CacheFile file(folder, key);
  ASSERT_EQ(file.store(bytes_of(100, 1)), "");
  for (std::uintmax_t size = fs::file_size(file.path()); size-- > 0;) {
    fs::resize_file(file.path(), size);
    EXPECT_NE(objection(file), "") << size;
  }
  EXPECT_EQ(file.store(bytes_of(100, 2)), "");
  std::string said;
  EXPECT_EQ(file.load(said), bytes_of(100, 2));
}

TEST_F(CacheFiles, FilesThatOthersMayWriteAreNotUsed) {
  const CacheFile file(folder, key);
  ASSERT_EQ(file.store(bytes_of(100, 1)), "");
  fs::permissions(file.path(), fs::perms::others_write, fs::perm_options::add);
  EXPECT_THAT(objection(file), testing::HasSubstr("another user"));
  fs::remove(file.path());
  fs::create_directory(file.path());
  EXPECT_NE(objection(file), "");
  EXPECT_NE(file.store(bytes_of(100, 1)), "");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1) << "no other file remains";
}

TEST_F(CacheFiles, AFolderThatCannotBeWrittenIsLogged) {
  std::ofstream(folder + "/file") << "no folder";
  EXPECT_NE(CacheFile(folder + "/file/below", key).store(bytes_of(10, 1)), "");
  EXPECT_NE(CacheFile("/proc/backplane", key).store(bytes_of(10, 1)), "");
  // Permissions do not restrict root, so a child process with the user id of `nobody` tests the
  // permissions.
  fs::permissions(folder, fs::perms::owner_write, fs::perm_options::remove);
  fs::permissions(folder, fs::perms::others_read | fs::perms::others_exec, fs::perm_options::add);
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(2);
    ::_exit(CacheFile(folder, key).store(bytes_of(10, 1)) == std::strerror(EACCES) ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  fs::permissions(folder, fs::perms::owner_write, fs::perm_options::add);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1) << "only what this test put there";
}

// A limit on file sizes simulates a full disk.
TEST_F(CacheFiles, AFullDiskIsLoggedAndTheOldFileStays) {
  const CacheFile file(folder, key);
  ASSERT_EQ(file.store(bytes_of(100, 1)), "");
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{1000, limit.rlim_max};
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string why = file.store(bytes_of(70000, 2));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  (void)std::signal(SIGXFSZ, handler);
  EXPECT_EQ(why, std::strerror(EFBIG));
  std::string said;
  EXPECT_EQ(file.load(said), bytes_of(100, 1)) << said;
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1) << "no other file remains";
}

TEST_F(CacheFiles, ProcessesThatWriteAtOnceLeaveWholeFiles) {
  const CacheFile file(folder, key);
  ASSERT_EQ(file.store(bytes_of(50000, 0)), "");
  std::vector<pid_t> children;
  for (int child = 1; child <= 3; ++child) {
    const pid_t id = ::fork();
    if (id != 0) {
      children.push_back(id);
      continue;
    }
    bool good = true;
    for (int round = 0; round < 50; ++round) {
      const CacheFile::Lock lock(file);
      std::string said;
      good = good && !file.load(said).empty() && file.store(bytes_of(50000, child)).empty();
    }
    ::_exit(good ? 0 : 1);
  }
  std::string said;
  for (int round = 0; round < 200; ++round) {
    const auto data = file.load(said);
    EXPECT_EQ(said, "");
    EXPECT_EQ(data.size(), 50000u);
  }
  for (const pid_t id : children) {
    int status = -1;
    ::waitpid(id, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST(CacheFolder, TheEnvironmentDecides) {
  const auto with = [](const char* own, const char* xdg, const char* home) {
    const std::pair<const char*, const char*> variables[] = {
        {"BACKPLANE_PLAIN_CACHE", own}, {"XDG_CACHE_HOME", xdg}, {"HOME", home}};
    for (const auto& [name, value] : variables) {
      value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
    }
    return cache_folder("BACKPLANE_PLAIN_CACHE", "plain");
  };
  EXPECT_EQ(with("off", "/x", "/h"), std::nullopt);
  EXPECT_EQ(with("/mine", "/x", "/h"), "/mine");
  EXPECT_EQ(with(nullptr, "/x", "/h"), "/x/backplane/plain");
  EXPECT_EQ(with("", "/x", "/h"), "/x/backplane/plain");
  EXPECT_EQ(with(nullptr, "relative", "/h"), "/h/.cache/backplane/plain");  // XDG ignores relative paths
  EXPECT_EQ(with(nullptr, nullptr, "/h"), "/h/.cache/backplane/plain");
  EXPECT_EQ(with(nullptr, nullptr, nullptr), std::nullopt);
}

}  // namespace

}  // namespace backplane::cache::test
