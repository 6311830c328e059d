// SPDX-License-Identifier: Apache-2.0
// Whose call a stream is in. An ordinary stream needs nothing: its caller hands it from call to call. A SHARED one has
// a lock, held around the plugin's calls. Inside the caller's own enqueue callback a call is refused.
//
// In a turn the host's callbacks do not run, except the framework's allocator. Log lines of this thread and releases of
// imported memory wait until the thread's last turn has ended (docs/decisions/0076-streams-that-threads-share.md).
#pragma once

#include <cstdint>

namespace backplane::core {

class Registry;
class Stream;

class StreamLock {
 public:
  // `wait`: also enters a stream that an enqueue callback failed.
  enum class Purpose : uint8_t { call, wait };

  // Throws INVALID_ARGUMENT inside an enqueue callback of the stream, and the error that failed the stream.
  inline StreamLock(Stream& stream, const char* function, Purpose purpose = Purpose::call);
  StreamLock(const StreamLock&) = delete;
  StreamLock& operator=(const StreamLock&) = delete;
  ~StreamLock() {
    if (held_) [[unlikely]]
      leave();
  }

  // Whether this thread has the turn of a SHARED stream.
  static bool held_by_thread() noexcept { return locks_held != 0; }
  // Keeps a log line for after the turn; false if there is no memory for it.
  static bool defer_log(const Registry& registry, int32_t level, const char* message) noexcept;
  // A release of imported memory fell due in the turn: the allocator looks again after it.
  static void defer_releases() noexcept { releases_due = true; }
  // The calling thread's identity, by which a SHARED stream knows the owner of its turn.
  static const void* thread() noexcept { return &locks_held; }

 private:
  void enter(const char* function, Purpose purpose);
  void leave() noexcept;

  static inline constinit thread_local uint32_t locks_held = 0;
  static inline constinit thread_local bool releases_due = false;

  Stream& stream_;
  bool held_ = false;
};

}  // namespace backplane::core
