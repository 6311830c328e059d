// SPDX-License-Identifier: Apache-2.0
// The file of the layer `trace`. Any thread may append events, which are buffered. After every
// flush the file is a complete JSON document.
#pragma once

#include <backplane/plugin.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <string_view>

namespace backplane::core::layers {

class TraceFile {
 public:
  // Opens the file at `pattern`, in which the process id replaces each "%p". The first call for a
  // path in this process creates or truncates the file, and later calls return the same object.
  // `source` states the origin of the pattern. The file remains open until the process ends, and
  // exit flushes it. Throws INVALID_ARGUMENT if the file cannot be written.
  static TraceFile& open(std::string_view pattern, const char* source);

  // Returns the number of microseconds since the file was opened.
  double now() const noexcept {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start_).count();
  }
  // new_group and new_flow each return a number that is unique in the file.
  uint32_t new_group() noexcept { return groups_.fetch_add(1, std::memory_order_relaxed) + 1; }
  uint64_t new_flow() noexcept { return flows_.fetch_add(1, std::memory_order_relaxed) + 1; }
  // Returns the number of the calling thread. The first thread has number 1.
  static uint32_t thread_number() noexcept;

  // Appends one JSON object. The first write failure is logged to `host` and ends the trace.
  void add(std::string_view event, const bp_host& host) noexcept;
  // Counts an event that was lost because memory ran out. The next flush reports how many were
  // lost.
  void lose_one() noexcept { lost_.fetch_add(1, std::memory_order_relaxed); }
  void flush(const bp_host& host) noexcept;

 private:
  TraceFile(std::string path, int file);
  static void at_exit() noexcept;
  bool write_out(std::string* complaint) noexcept;  // the caller holds the mutex

  static constexpr size_t kBufferBytes = 64 * 1024;

  const std::string path_;
  const int file_;
  const pid_t owner_;  // process that opened the file; a forked child writes nothing
  const std::chrono::steady_clock::time_point start_;
  std::atomic<uint32_t> groups_{0};
  std::atomic<uint64_t> flows_{0}, lost_{0};
  std::mutex mutex_;  // guards all members below
  std::string buffer_;
  uint64_t written_ = 0;  // number of bytes in the file without the closing characters
  bool any_ = false, failed_ = false;
};

}  // namespace backplane::core::layers
