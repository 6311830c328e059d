// SPDX-License-Identifier: Apache-2.0
// Streams and events. A command of a stream starts after the previous command has ended.
#pragma once

#include <deque>

#include "gpu_host/test_driver/driver.hpp"

namespace backplane::gpu_host::test_driver {

using simt::test_driver::Signal;
using simt::test_driver::Work;

// A point of a stream that a later wait refers to.
struct Point {
  Point() : signal(machine()) {}
  Signal signal;
  Clock reached;  // the commands that have ended at this point
};

class Stream {
 public:
  explicit Stream(Context& of);
  ~Stream();  // waits for all commands
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Context& context() const { return context_; }
  // Enqueues a command with `enqueue(work)`, which returns a code of OpenCL.
  template <class Enqueue>
  Result command(const Enqueue& enqueue) {
    if (const Result result = delay(); result != Result::kSuccess) return result;
    ++commands_;
    return result_of(enqueue(work_));
  }
  // Enqueues a signal at the current end of the stream.
  Result mark(std::shared_ptr<Point>& out);
  Result wait_for(const std::shared_ptr<Point>& point);
  // Waits for all commands. `call` is unlocked during the wait.
  void finish(Call& call);

  uint64_t number() const { return number_; }
  uint64_t commands() const { return commands_; }
  // Returns whether `command` of `stream` ends before the next command of this stream begins.
  bool follows(uint64_t stream, uint64_t command) const;

 private:
  Result delay();
  Clock end() const;

  Context& context_;
  const uint64_t number_;
  uint64_t commands_ = 0;
  Clock waited_;  // the commands of other streams that this stream has waited for
  Work work_;
};

// Streams and events exist until their last user ends, so that a violation does not cause a crash.
struct Event {
  Context& context;
  const bool is_timed;
  std::shared_ptr<Point> point;  // null before the first record
};

// Each function that takes a handle reports a violation and returns null if the object does not exist.
void* add_stream(Context& context);
std::shared_ptr<Stream> find_stream(const void* handle);
// Enqueue calls and waits use this function. The stream must belong to the context of the call.
std::shared_ptr<Stream> find_stream(const Call& call, const void* handle);
Result remove_stream(Call& call, const void* handle);
void* add_event(Context& context, bool is_timed);
std::shared_ptr<Event> find_event(const void* handle);
Result remove_event(const void* handle);

Result record(const Call& call, const void* event, const void* stream);
Result wait_event(const Call& call, const void* stream, const void* event);
Result query(const void* event);
Result await_event(Call& call, const void* event);
Result synchronize(Call& call, const void* stream);
Result elapsed(const void* begin, const void* end, float& milliseconds);

}  // namespace backplane::gpu_host::test_driver
