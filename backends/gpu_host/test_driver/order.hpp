// SPDX-License-Identifier: Apache-2.0
// The order of commands, as vector clocks. A command must end before memory that it uses is freed.
#pragma once

#include <cstdint>
#include <map>

namespace backplane::gpu_host::test_driver {

// A vector clock for a point of a stream or of the host. It maps each stream, identified by a
// number, to a count n: the first n commands of that stream have ended.
class Clock {
 public:
  void reach(uint64_t stream, uint64_t commands);
  void join(const Clock& other);
  // Returns whether the first `commands` commands of `stream` have ended. Returns true if the
  // stream was destroyed, because the driver waits for a stream's commands before it destroys the
  // stream.
  bool has(uint64_t stream, uint64_t commands) const;

  // A stream's number is valid between these two calls.
  static uint64_t create_stream();
  static void destroy_stream(uint64_t stream);

 private:
  std::map<uint64_t, uint64_t> reached_;
};

}  // namespace backplane::gpu_host::test_driver
