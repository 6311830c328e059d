// SPDX-License-Identifier: Apache-2.0
// Anonymous files that processes share by their descriptors, and mappings of these files. The files
// cannot shrink, so no access to a mapping can fail.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <backplane/kit/error.hpp>
#include <cerrno>
#include <cstring>
#include <memory>

namespace backplane::kit {

// A file descriptor that this object owns.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  // Returns the descriptor, which the caller then owns.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// Returns a new descriptor of the file to which the descriptor `given` of a caller refers. `given` may be any number.
inline Result<Descriptor> duplicate_descriptor(const char* what, int64_t given) {
  Descriptor fd(given < 0 || given > INT32_MAX ? -1 : ::fcntl(static_cast<int>(given), F_DUPFD_CLOEXEC, 0));
  if (fd.get() >= 0) return fd;
  if (given >= 0 && errno == EMFILE) {
    return out_of_memory(what, ": F_DUPFD_CLOEXEC failed: ", std::strerror(errno), "; free file descriptors");
  }
  return invalid_argument(what, ": ", given, " is no open file descriptor; pass a descriptor that was exported");
}

// A range of a shared file, mapped for reading and writing.
class SharedFile {
 public:
  // Creates a file of `bytes` bytes, which are 0. `what` is a noun for messages.
  static Result<std::shared_ptr<SharedFile>> create(const char* what, uint64_t bytes) {
    if (bytes > kMaxBytes) return out_of_memory(what, ": ", bytes, " bytes are beyond the size of a file");
    Descriptor fd(::memfd_create("backplane", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (fd.get() < 0) return failure(what, "memfd_create");
    // Allocates all pages now, because a write to a page that cannot be allocated raises SIGBUS.
    int error = EINTR;
    while (error == EINTR) error = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes));
    if (error != 0) {
      errno = error;
      return failure(what, "posix_fallocate");
    }
    if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
      return failure(what, "F_ADD_SEALS");
    return map(what, std::move(fd), 0, bytes, bytes);
  }

  // Maps `bytes` bytes at `offset` of a file that another process or device created. `given` may be
  // any number, because the call checks that it is the descriptor of a file that cannot shrink.
  static Result<std::shared_ptr<SharedFile>> open(const char* what, int64_t given, uint64_t offset, uint64_t bytes) {
    auto duplicate = duplicate_descriptor(what, given);
    if (!duplicate.ok()) return duplicate.status();
    Descriptor fd = std::move(duplicate.value());
    const int seals = ::fcntl(fd.get(), F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
      return invalid_argument(what, ": the descriptor ", given, " is no file that is sealed against shrinking (",
                              "F_SEAL_SHRINK); pass a descriptor that was exported");
    }
    struct stat about = {};
    if (::fstat(fd.get(), &about) != 0) return failure(what, "fstat");
    const auto size = static_cast<uint64_t>(about.st_size);
    if (offset > size || bytes > size - offset) {
      return invalid_argument(what, ": ", bytes, " bytes at offset ", offset,
                              " reach past the end of the file, which has ", size);
    }
    return map(what, std::move(fd), offset, bytes, size);
  }

  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  ~SharedFile() { ::munmap(mapping_, mapped_); }

  std::byte* address() const { return address_; }
  uint64_t offset() const { return offset_; }          // position of the range in the file
  uint64_t file_bytes() const { return file_bytes_; }  // size of the whole file
  // Returns a new descriptor of the file, which the caller closes.
  Result<int> duplicate(const char* what) const {
    const int fd = ::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return failure(what, "F_DUPFD_CLOEXEC");
    return fd;
  }

 private:
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 62;

  SharedFile(Descriptor fd, void* mapping, uint64_t mapped, uint64_t offset, uint64_t file_bytes)
      : fd_(std::move(fd)),
        mapping_(mapping),
        mapped_(mapped),
        address_(static_cast<std::byte*>(mapping) + offset % page()),
        offset_(offset),
        file_bytes_(file_bytes) {}

  static uint64_t page() { return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)); }
  static Result<std::shared_ptr<SharedFile>> map(const char* what, Descriptor fd, uint64_t offset, uint64_t bytes,
                                                 uint64_t file_bytes) {
    const uint64_t start = offset / page() * page(), mapped = offset - start + bytes;
    void* mapping = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), static_cast<off_t>(start));
    if (mapping == MAP_FAILED) {
      if (errno == ENOMEM) return failure(what, "mmap");
      return invalid_argument(what, ": the file cannot be mapped for reading and writing: ", std::strerror(errno));
    }
    return std::shared_ptr<SharedFile>(new SharedFile(std::move(fd), mapping, mapped, offset, file_bytes));
  }
  static Status failure(const char* what, const char* call) {
    const int error = errno;
    return out_of_memory(what, ": ", call, " failed: ", std::strerror(error), "; free memory or file descriptors");
  }

  Descriptor fd_;
  void* mapping_;
  uint64_t mapped_;
  std::byte* address_;
  uint64_t offset_;
  uint64_t file_bytes_;
};

}  // namespace backplane::kit
