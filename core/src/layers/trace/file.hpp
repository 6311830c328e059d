// SPDX-License-Identifier: Apache-2.0
// The file of the layer `trace`: events appended by any thread, a buffer's worth of memory, and a whole JSON document after
// every flush.
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
  // The file at `pattern`, whose every "%p" stands for the process id: made, or emptied, at its first opening in this process,
  // and then one for all registries. `source` names where the pattern came from. It lives until the process ends, and what is
  // buffered is written at exit. Throws INVALID_ARGUMENT where it cannot be written.
  static TraceFile& open(std::string_view pattern, const char* source);

  // Microseconds since it was opened.
  double now() const noexcept {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start_).count();
  }
  // A number that no other device, record or thread of this file has.
  uint32_t new_group() noexcept { return groups_.fetch_add(1, std::memory_order_relaxed) + 1; }
  uint64_t new_flow() noexcept { return flows_.fetch_add(1, std::memory_order_relaxed) + 1; }
  // Of the calling thread, from 1.
  static uint32_t thread_number() noexcept;

  // One JSON object. The first failure to write is logged to `host`, and ends the trace.
  void add(std::string_view event, const bp_host& host) noexcept;
  // An event was lost because memory ran out: the next flush says how many.
  void lose_one() noexcept { lost_.fetch_add(1, std::memory_order_relaxed); }
  void flush(const bp_host& host) noexcept;

 private:
  TraceFile(std::string path, int file);
  static void at_exit() noexcept;
  bool write_out(std::string* complaint) noexcept;  // locked by the caller

  static constexpr size_t kBufferBytes = 64 * 1024;

  const std::string path_;
  const int file_;
  const pid_t owner_;  // a forked child writes nothing
  const std::chrono::steady_clock::time_point start_;
  std::atomic<uint32_t> groups_{0};
  std::atomic<uint64_t> flows_{0}, lost_{0};
  std::mutex mutex_;  // of all below
  std::string buffer_;
  uint64_t written_ = 0;  // bytes of the file, without the document's end
  bool any_ = false, failed_ = false;
};

}  // namespace backplane::core::layers
