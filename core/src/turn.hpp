// SPDX-License-Identifier: Apache-2.0
// Whose call a stream is in: nothing to do for an ordinary stream, which its caller hands from call to call; a lock for a SHARED
// one, held round the plugin's calls; and a refusal inside the caller's own enqueue callback.
//
// In a turn no callback of the host runs but the framework's allocator: log lines of this thread are kept, and releases of
// imported memory put off, until the thread's last turn has ended (docs/decisions/0076-streams-that-threads-share.md).
#pragma once

#include <cstdint>

namespace bp {

class Registry;
class Stream;

class Turn {
 public:
  // `wait`: a stream that an enqueue callback failed is entered too.
  enum class Purpose : uint8_t { call, wait };

  // Throws INVALID_ARGUMENT inside an enqueue callback of the stream, and what the stream failed with.
  inline Turn(Stream& stream, const char* function, Purpose purpose = Purpose::call);
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (held_) [[unlikely]]
      leave();
  }

  // Whether this thread has the turn of a SHARED stream.
  static bool held() noexcept { return turns != 0; }
  // Keeps a log line for after the turn; false if there is no memory for it.
  static bool defer_log(const Registry& registry, int32_t level, const char* message) noexcept;
  // Imported memory fell due in the turn: the allocator is asked again after it.
  static void defer_releases() noexcept { releases_due = true; }
  // Of the calling thread: what a SHARED stream's turn is known by.
  static const void* thread() noexcept { return &turns; }

 private:
  void enter(const char* function, Purpose purpose);
  void leave() noexcept;

  static inline constinit thread_local uint32_t turns = 0;
  static inline constinit thread_local bool releases_due = false;

  Stream& stream_;
  bool held_ = false;
};

}  // namespace bp
