// SPDX-License-Identifier: Apache-2.0
// One event of a trace, in the trace event format that Chrome and Perfetto read.
#pragma once

#include <backplane/ops.h>
#include <fmt/format.h>

#include <cstdint>
#include <string_view>

namespace backplane::core::layers {

// Where an event is drawn: `group` is a device, `line` a stream or a host thread of it.
struct Track {
  uint32_t group;
  uint32_t line;
};
inline constexpr uint32_t kFirstThreadLine = 1000;  // lines below are streams

class TraceEvent {
 public:
  // `phase` is the format's: X a span, s and t the ends of an arrow, C a counter, M a name. Times in microseconds.
  TraceEvent(char phase, std::string_view name, Track track);
  TraceEvent& time(double begin);
  TraceEvent& span(double begin, double end);
  TraceEvent& category(std::string_view category);
  TraceEvent& flow(uint64_t id);

  TraceEvent& arg(std::string_view name, uint64_t value);
  TraceEvent& arg(std::string_view name, std::string_view value);
  // "f32[64,128]" of each operand; views that are not dense with their strides, immediates as such.
  TraceEvent& arg(std::string_view name, const bp_tensor_desc* views, uint32_t count);

  // Borrowed; nothing may be added any more.
  std::string_view text();

 private:
  void key(std::string_view name);

  fmt::basic_memory_buffer<char, 2048> text_;
  bool any_arg_ = false;
};

// "add"; of an operator that the table does not have its number.
std::string_view op_name(uint32_t op, char (&room)[32]);

// Bytes that an execution reads and writes: each operand's distinct elements once, an output that is read too, twice.
uint64_t bytes_moved(const bp_op_desc& desc) noexcept;

}  // namespace backplane::core::layers
