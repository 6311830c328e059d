// SPDX-License-Identifier: Apache-2.0
// Gives one call exclusive use of a stream. An ordinary stream needs no lock, because its callers
// never run at the same time. A SHARED stream has a lock, which is held around plugin calls. A call
// from inside the caller's own enqueue callback is refused.
//
// While a lock is held, no host callbacks run, except the framework's allocator. Log lines of this
// thread and releases of imported memory are deferred until the thread releases its last lock
// (docs/decisions/0076-shared-streams.md).
#pragma once

#include <cstdint>

namespace backplane::core {

class Registry;
class Stream;

class StreamLock {
 public:
  // The purpose of a lock. On a stream that an enqueue callback has put into the failed state, only a lock for `wait`
  // succeeds, and other locks throw. On a stream that records a graph, only a lock for `record` succeeds; the caller
  // records its call.
  enum class Purpose : uint8_t { call, wait, record };

  // Throws INVALID_ARGUMENT inside an enqueue callback of the stream, and for a call that a graph cannot record. If an
  // enqueue callback has put the stream into the failed state and the purpose is not `wait`, throws the callback's
  // error.
  inline StreamLock(Stream& stream, const char* function, Purpose purpose = Purpose::call);
  StreamLock(const StreamLock&) = delete;
  StreamLock& operator=(const StreamLock&) = delete;
  ~StreamLock() {
    if (held_) [[unlikely]]
      leave();
  }

  // Returns whether this thread holds the lock of any SHARED stream.
  static bool held_by_thread() noexcept { return locks_held != 0; }
  // Defers a log line until the thread's locks are released. Returns false if there is no memory to
  // store the line.
  static bool defer_log(const Registry& registry, int32_t level, const char* message) noexcept;
  // Call this function if imported memory must not be released yet because this thread holds a
  // lock. The allocator polls again after the thread has released its locks.
  static void defer_releases() noexcept { releases_due = true; }
  // Returns the identity of the calling thread, which a SHARED stream stores as the owner of its
  // lock.
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
