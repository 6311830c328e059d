// SPDX-License-Identifier: Apache-2.0
#include "cache_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <backplane/kit/error.hpp>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <system_error>
#include <thread>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace backplane::cache {

namespace {

constexpr char kMagic[8] = {'B', 'P', 'K', 'E', 'R', 'N', 'E', 'L'};
constexpr uint32_t kVersion = 1;
constexpr uint64_t kMaxBytes = uint64_t{1} << 30;  // larger files are rejected

// Header of a cache file. Integers have the machine's byte order, because caches are not portable.
struct Header {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  CacheKey key;
  uint64_t data_bytes;
  uint64_t digest;  // XXH3 hash of the data that follows the header
};
static_assert(sizeof(Header) == 72, "no padding: the struct is written byte by byte");

std::string reason() { return std::generic_category().message(errno); }

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  bool valid() const { return number_ >= 0; }
  int get() const { return number_; }

 private:
  int number_;
};

bool read_all(int file, void* out, std::size_t bytes) {
  auto* at = static_cast<std::byte*>(out);
  while (bytes > 0) {
    const ssize_t got = ::read(file, at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

bool write_all(int file, const void* from, std::size_t bytes) {
  const auto* at = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    const ssize_t put = ::write(file, at, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    at += put;
    bytes -= static_cast<std::size_t>(put);
  }
  return true;
}

// Creates the folder and its parents with mode 0700, as the XDG base directory specification
// requires.
bool make_folder(const std::string& folder) {
  for (std::size_t end = folder.find('/', 1);; end = folder.find('/', end + 1)) {
    if (::mkdir(folder.substr(0, end).c_str(), 0700) != 0 && errno != EEXIST) return false;
    if (end == std::string::npos) return true;
  }
}

std::string hex(const uint8_t (&bytes)[16]) {
  std::string out;
  for (const uint8_t byte : bytes) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

// Returns the reason why a header is invalid, or null if the header is valid.
const char* objection_to(const Header& header, const CacheKey& key, uint64_t data_bytes) {
  if (!std::equal(std::begin(kMagic), std::end(kMagic), header.magic)) return "it is not a kernel cache";
  if (header.version != kVersion || header.header_bytes != sizeof(Header)) return "it has another format version";
  if (!(header.key == key)) return "it is for another device, driver or build";
  if (header.data_bytes != data_bytes) return "its size differs from the size in its header";
  return nullptr;
}

// Calls `lock` until it succeeds, fails for another reason than that the lock is held, or `longest` has passed.
template <class LockFunction>
void await_lock(const LockFunction& lock, std::chrono::seconds longest) {
  const auto end = std::chrono::steady_clock::now() + longest;
  while (lock() != 0 && (errno == EWOULDBLOCK || errno == EACCES || errno == EINTR) &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

std::optional<std::string> cache_folder(const char* setting, const char* plugin) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  const std::string requested = variable(setting);
  if (requested == "off") return std::nullopt;
  if (!requested.empty()) return requested;
  if (const std::string cache = variable("XDG_CACHE_HOME"); cache.starts_with('/')) {
    return kit::text(cache, "/backplane/", plugin);
  }
  if (const std::string home = variable("HOME"); home.starts_with('/')) {
    return kit::text(home, "/.cache/backplane/", plugin);
  }
  return std::nullopt;
}

CacheFile::CacheFile(std::string folder, const CacheKey& key) : folder_(std::move(folder)), key_(key) {
  char build[17];
  std::snprintf(build, sizeof(build), "%016llx", static_cast<unsigned long long>(key.build));
  path_ = kit::text(folder_, "/", hex(key.device), "-", hex(key.driver), "-", build, ".cache");
}

std::vector<std::byte> CacheFile::load(std::string& objection) const {
  objection.clear();
  const Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.valid()) {
    if (errno != ENOENT && errno != ENOTDIR) objection = reason();
    return {};
  }
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) {
    objection = reason();
    return {};
  }
  // Drivers trust the data, so only the current user and root may own the file or write to it.
  if (!S_ISREG(about.st_mode) || (about.st_uid != ::geteuid() && about.st_uid != 0) ||
      (about.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    objection = "it is not a regular file, or another user owns it or may write to it";
    return {};
  }
  const auto bytes = static_cast<uint64_t>(about.st_size);
  Header header;
  if (bytes < sizeof(header) || bytes > kMaxBytes || !read_all(file.get(), &header, sizeof(header))) {
    objection = kit::text("it has ", bytes, " bytes");
    return {};
  }
  const uint64_t data_bytes = bytes - sizeof(header);
  if (const char* wrong = objection_to(header, key_, data_bytes)) {
    objection = wrong;
    return {};
  }
  std::vector<std::byte> data(data_bytes);
  if (!read_all(file.get(), data.data(), data.size())) {
    objection = "it cannot be read completely";
    return {};
  }
  if (XXH3_64bits(data.data(), data.size()) != header.digest) {
    objection = "its data does not match its digest";
    return {};
  }
  return data;
}

std::string CacheFile::store(std::span<const std::byte> data) const {
  if (!make_folder(folder_)) return reason();
  Header header{};
  std::copy(std::begin(kMagic), std::end(kMagic), header.magic);
  header.version = kVersion;
  header.header_bytes = sizeof(Header);
  header.key = key_;
  header.data_bytes = data.size();
  header.digest = XXH3_64bits(data.data(), data.size());
  std::string temporary = path_ + ".XXXXXX";
  const Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file.valid()) return reason();
  if (write_all(file.get(), &header, sizeof(header)) && write_all(file.get(), data.data(), data.size()) &&
      ::rename(temporary.c_str(), path_.c_str()) == 0) {
    return {};
  }
  std::string why = reason();
  ::unlink(temporary.c_str());
  return why;
}

CacheFile::Lock::Lock(const CacheFile& file)
    : folder_(::open(file.folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  using namespace std::chrono_literals;
  if (folder_ >= 0) await_lock([this] { return ::flock(folder_, LOCK_EX | LOCK_NB); }, 1s);
}

CacheFile::Lock::~Lock() {
  if (folder_ >= 0) ::close(folder_);
}

// All files of a folder share one file of locks. Each file locks one byte, whose offset is the digest of what the file
// contains. The lock of an open file description excludes other threads too, and ends with its process.
CacheFile::ComputeLock::ComputeLock(const CacheFile& file)
    : locks_(make_folder(file.folder_)
                 ? ::open((file.folder_ + "/locks").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)
                 : -1) {
  if (locks_ < 0) return;
  struct flock byte = {};
  byte.l_type = F_WRLCK;
  byte.l_whence = SEEK_SET;
  byte.l_start = static_cast<off_t>(file.key_.build >> 1);
  byte.l_len = 1;
  await_lock([&] { return ::fcntl(locks_, F_OFD_SETLK, &byte); }, std::chrono::minutes(1));
}

CacheFile::ComputeLock::~ComputeLock() {
  if (locks_ >= 0) ::close(locks_);
}

}  // namespace backplane::cache
