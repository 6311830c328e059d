// SPDX-License-Identifier: Apache-2.0
// Messages from a worker to its supervisor over a pipe, and the work that goes the other way.
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
    finished,  // it ended with `result`
    foreign,   // a process that the plugin made returned from case `index`
    closing,   // all work is done; the plugin is shut down
    facts,     // `result.message` is a text of Facts
  };
  Kind kind = Kind::started;
  uint32_t index = 0;  // into the selection
  Result result{};
};

// Blocks until it is written; false if nobody reads any more.
bool send(int fd, const Message& message);

// Collects bytes as they come and cuts them into messages.
class MessageReader {
 public:
  void append(const char* bytes, size_t count) { bytes_.insert(bytes_.end(), bytes, bytes + count); }
  std::optional<Message> next();           // none: incomplete so far
  bool broken() const { return broken_; }  // something else was written to the channel

 private:
  std::vector<char> bytes_;
  bool broken_ = false;
};

// A range of the selection, [first, last).
struct Work {
  uint32_t first;
  uint32_t last;
};

// Descriptors of a worker.
struct WorkerEnds {
  int work;        // ranges come from it until it closes
  int report;      // messages go into it
  int output;      // file behind its standard output and error
  SlotPage* page;  // shared with the supervisor; may be null
};

uint64_t file_bytes(int fd);

// The child's side. Never returns to the caller's code.
[[noreturn]] void work(const Catalogue& catalogue, const std::vector<size_t>& selection, const RunOptions& options,
                       WorkerEnds ends);

}  // namespace backplane::conformance
