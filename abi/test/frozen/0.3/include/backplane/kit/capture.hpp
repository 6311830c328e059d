// SPDX-License-Identifier: Apache-2.0
// The streams of a capture, and the waits between them. graph.h defines what a capture records.
#pragma once

#include <algorithm>
#include <backplane/kit/error.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace backplane::kit {

// A lane is a stream of the capture. Lane 0 is the stream on which the capture began.
class CaptureLanes {
 public:
  // The number of commands of each lane that precede a point.
  using Counts = std::vector<uint64_t>;

  CaptureLanes() { add_lane(); }

  std::size_t lanes() const { return lanes_.size(); }
  // Returns the index of a new lane.
  std::size_t add_lane() {
    lanes_.emplace_back();
    return lanes_.size() - 1;
  }
  void add_command(std::size_t lane) { ++lanes_[lane].commands; }
  // Returns the point after the commands of a lane so far.
  Counts point(std::size_t lane) const {
    Counts counts = lanes_[lane].before;
    counts.resize(std::max(counts.size(), lane + 1));
    counts[lane] = lanes_[lane].commands;
    return counts;
  }
  // Makes later commands of a lane follow the point.
  void wait(std::size_t lane, const Counts& point) {
    Counts& before = lanes_[lane].before;
    before.resize(std::max(before.size(), point.size()));
    for (std::size_t i = 0; i < point.size(); ++i) before[i] = std::max(before[i], point[i]);
  }
  // Returns the number of commands of all lanes.
  uint64_t commands() const {
    uint64_t sum = 0;
    for (const Lane& lane : lanes_) sum += lane.commands;
    return sum;
  }
  // Returns whether lane 0 has waited for all commands of the other lanes.
  bool joined() const {
    const Counts& before = lanes_[0].before;
    for (std::size_t i = 1; i < lanes_.size(); ++i) {
      if ((i < before.size() ? before[i] : 0) < lanes_[i].commands) return false;
    }
    return true;
  }

 private:
  struct Lane {
    uint64_t commands = 0;
    Counts before;
  };

  std::vector<Lane> lanes_;
};

// The failures of calls that a capture forbids.
inline Status captures_already() {
  return invalid_argument("graph_begin: the stream captures a graph already; end that capture");
}
inline Status captures_nothing() {
  return invalid_argument("graph_end: no capture began on this stream; end the capture on the stream of its begin");
}
inline Status not_joined() {
  return invalid_argument(
      "graph_end: a stream joined the capture, and this stream did not wait for its last work; record an event "
      "there and wait for it");
}
inline Status launched_in_capture() {
  return invalid_argument("graph_launch: the stream captures a graph; end the capture first");
}
inline Status waited_in_capture() {
  return invalid_argument("stream_wait: the stream captures a graph; end the capture first");
}
inline Status semaphore_in_capture(const char* slot) {
  return invalid_argument(slot, ": the stream captures a graph; end the capture first");
}
inline Status recorded_outside() {
  return invalid_argument(
      "stream_wait_event: the stream captures a graph, and the event was recorded outside of this capture; wait "
      "for it before the capture");
}
inline Status recorded_in_graph(const char* slot) {
  return invalid_argument(slot, ": the event was last recorded in a graph; record it outside of a capture");
}
inline Status captures_another() {
  return invalid_argument("stream_wait_event: the stream captures another graph; end that capture first");
}

// Returns INVALID_ARGUMENT if a binding exceeds its buffer, which has `bytes` bytes.
inline Status check_binding(const char* slot, uint64_t bytes, const bp_graph_binding& binding) {
  if (binding.offset <= bytes && binding.bytes <= bytes - binding.offset) return {};
  return invalid_argument(slot, ": a binding of ", binding.bytes, " bytes at ", binding.offset,
                          " reaches past its buffer, which has ", bytes);
}
// Returns INVALID_ARGUMENT if binding `index` of a launch has another size or kind of memory than the captured range.
inline Status check_replacement(std::size_t index, uint64_t bytes, uint32_t kind, uint64_t captured_bytes,
                                uint32_t captured_kind) {
  if (bytes == captured_bytes && kind == captured_kind) return {};
  return invalid_argument("graph_launch: binding ", index, " has ", bytes, " bytes of kind ", kind, ", ",
                          captured_bytes, " of kind ", captured_kind, " were captured; pass such a range");
}

}  // namespace backplane::kit
