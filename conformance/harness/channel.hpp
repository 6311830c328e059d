// SPDX-License-Identifier: Apache-2.0
// Defines the two channels between a worker and its supervisor. A pipe carries messages to the
// supervisor, and a socket carries ranges of cases to the worker.
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
    started,   // case `index` started
    finished,  // case `index` ended with `result`
    foreign,   // the plugin forked, and the child process has returned from the function of case `index`
    closing,   // the worker has run all its cases and now shuts the plugin down
    facts,     // `result.message` contains the serialized Facts
  };
  Kind kind = Kind::started;
  uint32_t index = 0;  // index into the selection
  Result result{};
};

// Blocks until the message is written. Returns false if a write fails.
bool send(int fd, const Message& message);

// Splits a stream of bytes into messages.
class MessageReader {
 public:
  void append(const char* bytes, size_t count) { bytes_.insert(bytes_.end(), bytes, bytes + count); }
  std::optional<Message> next();  // returns nullopt until the next message is complete
  // Whether the stream contained bytes that are not a message.
  bool broken() const { return broken_; }

 private:
  std::vector<char> bytes_;
  bool broken_ = false;
};

// A half-open range [first, last) of indices into the selection.
struct Work {
  uint32_t first;
  uint32_t last;
};

// The file descriptors and the shared page of a worker.
struct WorkerEnds {
  int work;        // socket from which the worker reads ranges until the supervisor closes it
  int report;      // pipe to which the worker writes its messages
  int output;      // file that receives standard output and standard error
  SlotPage* page;  // memory shared with the supervisor; may be null
};

uint64_t file_bytes(int fd);

// Runs the worker's main loop, then exits the process.
[[noreturn]] void work(const Catalogue& catalogue, const std::vector<size_t>& selection, const RunOptions& options,
                       WorkerEnds ends);

}  // namespace backplane::conformance
