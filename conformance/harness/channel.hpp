// SPDX-License-Identifier: Apache-2.0
// Pipes between a worker and its supervisor: one carries messages to the supervisor, the other work
// to the worker.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run.hpp"
#include "slot_watch.hpp"

namespace backplane::conformance {

struct Message {
  enum class Kind : uint32_t {
    started,   // case `index` begins
    finished,  // case `index` ended with `result`
    foreign,   // a process that the plugin created returned from case `index`
    closing,   // all work is done; the plugin is shut down
    facts,     // `result.message` is a serialized Facts
  };
  Kind kind = Kind::started;
  uint32_t index = 0;  // index into the selection
  Result result{};
};

// Blocks until the message is written. Returns false if the reader is gone.
bool send(int fd, const Message& message);

// Splits a stream of bytes into messages.
class MessageReader {
 public:
  void append(const char* bytes, size_t count) { bytes_.insert(bytes_.end(), bytes, bytes + count); }
  std::optional<Message> next();           // empty while the next message is incomplete
  bool broken() const { return broken_; }  // the channel contains bytes that are not messages

 private:
  std::vector<char> bytes_;
  bool broken_ = false;
};

// A range of the selection, [first, last).
struct Work {
  uint32_t first;
  uint32_t last;
};

// The file descriptors of a worker.
struct WorkerEnds {
  int work;        // the worker reads ranges here until the supervisor closes the pipe
  int report;      // the worker writes its messages here
  int output;      // a file that receives standard output and error
  SlotPage* page;  // shared with the supervisor; may be null
};

uint64_t file_bytes(int fd);

// The worker's main loop.
[[noreturn]] void work(const Catalogue& catalogue, const std::vector<size_t>& selection, const RunOptions& options,
                       WorkerEnds ends);

}  // namespace backplane::conformance
