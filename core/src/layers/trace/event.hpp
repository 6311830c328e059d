// SPDX-License-Identifier: Apache-2.0
// One event of a trace, in the trace event format that Chrome and Perfetto read.
#pragma once

#include <backplane/ops.h>
#include <fmt/format.h>

#include <cstdint>
#include <string_view>

namespace backplane::core::layers {

// The row of an event in a trace viewer. `group` is a device, and `line` is a stream or a host
// thread of that device.
struct Track {
  uint32_t group;
  uint32_t line;
};
// Smaller line numbers denote streams. A device never uses the number of a stream again.
inline constexpr uint32_t kFirstThreadLine = uint32_t{1} << 30;

class TraceEvent {
 public:
  // `phase` is a letter that the format defines: X is a span, s and t are the ends of an arrow, C
  // is a counter, and M is a name. Times are in microseconds.
  TraceEvent(char phase, std::string_view name, Track track);
  TraceEvent& time(double begin);
  TraceEvent& span(double begin, double end);
  TraceEvent& category(std::string_view category);
  TraceEvent& flow(uint64_t id);

  TraceEvent& arg(std::string_view name, uint64_t value);
  TraceEvent& arg(std::string_view name, std::string_view value);
  // Formats each operand as "f32[64,128]". Appends the strides if the operand is not dense. Marks
  // immediates.
  TraceEvent& arg(std::string_view name, const bp_tensor_desc* views, uint32_t count);

  // Returns the finished text, which belongs to the event. Do not add to the event after this call.
  std::string_view text();

 private:
  void key(std::string_view name);

  fmt::basic_memory_buffer<char, 2048> text_;
  bool any_arg_ = false;
};

// Returns the operator's name, e.g. "add". If the operator is unknown, stores text with its number
// in `room` and returns that text.
std::string_view op_name(uint32_t op, char (&room)[32]);

// Returns how many bytes an execution reads and writes. Counts the distinct elements of each
// operand once, or twice if the operand is an output that is also read.
uint64_t bytes_moved(const bp_op_desc& desc) noexcept;

}  // namespace backplane::core::layers
