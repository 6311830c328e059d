// SPDX-License-Identifier: Apache-2.0
// Writes the trace file, and flushes it at exit.
#include "layers/trace/file.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <thread>

#include "base/error.hpp"

namespace backplane::core::layers {

namespace {

constexpr std::string_view kHead =
    R"({"displayTimeUnit":"ns","otherData":{"writer":"backplane )" BACKPLANE_VERSION R"("},"traceEvents":[)";
constexpr std::string_view kTail = "\n]}\n";

// All trace files of this process, by path. The object is never destroyed, because threads may
// trace during exit.
struct Files {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<TraceFile>, std::less<>> by_path;
};
// Returns the files of this process. Files::mutex is held across fork, so that the child sees a
// consistent map.
Files& files() {
  static Files* const all = [] {
    auto made = std::make_unique<Files>();
    if (pthread_atfork([] { files().mutex.lock(); }, [] { files().mutex.unlock(); }, [] { files().mutex.unlock(); }) !=
        0) {
      throw std::bad_alloc();
    }
    return made.release();
  }();
  return *all;
}

std::string expand(std::string_view pattern) {
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern.substr(i, 2) == "%p") {
      path += std::to_string(getpid());
      ++i;
    } else {
      path += pattern[i];
    }
  }
  return path;
}

// Opens a regular file for writing. Never blocks on a FIFO or a device file.
int open_for_writing(const std::string& path, const char* source) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
  struct stat about = {};
  const char* why = nullptr;
  const bool known = file >= 0 && fstat(file, &about) == 0;
  if (known && !S_ISREG(about.st_mode)) {
    why = "it is no regular file";
  } else if (!known || ftruncate(file, 0) != 0) {
    why = std::strerror(errno);
  }
  if (why == nullptr) return file;
  const Error error(BP_INVALID_ARGUMENT,
                    "trace: {} is \"{:.512}\", which cannot be written: {}; name a file in a directory of yours",
                    source, path, why);
  if (file >= 0) ::close(file);
  throw error;
}

bool write_at(int file, std::string_view text, uint64_t offset) noexcept {
  while (!text.empty()) {
    const ssize_t count = pwrite(file, text.data(), text.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
  return true;
}

}  // namespace

TraceFile::TraceFile(std::string path, int file)
    : path_(std::move(path)), file_(file), owner_(getpid()), start_(std::chrono::steady_clock::now()) {
  buffer_.reserve(kBufferBytes + kTail.size());
  buffer_ = kHead;
}

TraceFile& TraceFile::open(std::string_view pattern, const char* source) {
  std::string path = expand(pattern);
  Files& all = files();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_path.find(path);
  if (found != all.by_path.end()) {
    if (found->second->owner_ == getpid()) return *found->second;
    throw Error(
        BP_INVALID_ARGUMENT,
        "trace: {} is \"{:.512}\", which process {} writes, of which this one was forked; give it a file of its own "
        "with %p in the path, for the process id",
        source, path, found->second->owner_);
  }
  if (all.by_path.empty() && std::atexit(at_exit) != 0) throw std::bad_alloc();
  const int file = open_for_writing(path, source);
  std::unique_ptr<TraceFile> made;
  try {
    made.reset(new TraceFile(path, file));
    std::string complaint;
    if (!made->write_out(&complaint)) throw Error(BP_INVALID_ARGUMENT, "{}", complaint);
    return *all.by_path.emplace(std::move(path), std::move(made)).first->second;
  } catch (...) {
    ::close(file);
    throw;
  }
}

uint32_t TraceFile::thread_number() noexcept {
  static std::atomic<uint32_t> threads{0};
  thread_local const uint32_t own = threads.fetch_add(1, std::memory_order_relaxed) + 1;
  return own;
}

bool TraceFile::write_out(std::string* complaint) noexcept {
  if (failed_) return true;
  const size_t length = buffer_.size();
  buffer_.append(kTail);  // allocates nothing, because the capacity is reserved
  const bool good = write_at(file_, buffer_, written_);
  const int code = errno;
  buffer_.resize(length);
  if (good) {
    written_ += length;
  } else {
    failed_ = true;
    // Overwrites the failed write, so that the file is a complete document with all events up to
    // the previous flush.
    (void)write_at(file_, kTail, written_);
    (void)!ftruncate(file_, static_cast<off_t>(written_ + kTail.size()));
    try {
      *complaint = fmt::format("trace: {}: {} after {} bytes; the trace ends here: make room, or trace less", path_,
                               std::strerror(code), written_);
    } catch (...) {
      *complaint = "";
    }
  }
  buffer_.clear();
  return good;
}

void TraceFile::add(std::string_view event, const bp_host& host) noexcept {
  if (getpid() != owner_) return;
  std::string complaint;
  bool good = true;
  {
    const std::lock_guard lock(mutex_);
    if (failed_) return;
    if (event.size() + 2 > kBufferBytes) {
      lose_one();
      return;
    }
    if (buffer_.size() + event.size() + 2 > kBufferBytes) good = write_out(&complaint);
    buffer_.append(any_ ? ",\n" : "\n").append(event);
    any_ = true;
  }
  if (!good) host.log(host.context, BP_LOG_ERROR, complaint.c_str());
}

void TraceFile::flush(const bp_host& host) noexcept {
  if (getpid() != owner_) return;
  std::string complaint;
  bool good = true;
  {
    const std::lock_guard lock(mutex_);
    good = write_out(&complaint);
  }
  if (!good) host.log(host.context, BP_LOG_ERROR, complaint.c_str());
  const uint64_t lost = lost_.exchange(0, std::memory_order_relaxed);
  if (lost == 0) return;
  const Error line(BP_OK, "trace: {:.512}: {} event(s) were lost, because host memory had run out", path_, lost);
  host.log(host.context, BP_LOG_WARNING, line.what());
}

// Calls no plugin, does not block for long and destroys nothing, because other threads may be
// tracing.
void TraceFile::at_exit() noexcept {
  const auto locked = [](std::mutex& mutex) {
    for (int tries = 0; tries < 100; ++tries) {
      if (mutex.try_lock()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  };
  Files& all = files();
  if (!locked(all.mutex)) return;
  for (const auto& [path, file] : all.by_path) {
    if (getpid() != file->owner_ || !locked(file->mutex_)) continue;
    std::string complaint;
    if (!file->write_out(&complaint)) std::fprintf(stderr, "backplane: error: %s\n", complaint.c_str());
    file->mutex_.unlock();
  }
  all.mutex.unlock();
}

}  // namespace backplane::core::layers
