// SPDX-License-Identifier: Apache-2.0
// Ranges of bytes in the plugin's buffers, which a graph uses or replaces.
#pragma once

#include <backplane/backplane.h>

#include <cstdint>
#include <vector>

#include "loading/device.hpp"

namespace backplane::core {

// A range of bytes in a plugin's buffer.
struct Range {
  bp_buffer* buffer = nullptr;
  uint64_t begin = 0;
  uint64_t end = 0;

  bool operator==(const Range&) const = default;
  bool overlaps(const Range& other) const noexcept {
    return buffer == other.buffer && begin < other.end && other.begin < end;
  }
  bool contains(const Range& other) const noexcept {
    return buffer == other.buffer && begin <= other.begin && other.end <= end;
  }
};

// A range that a launch may replace, and the properties that a replacement must have.
struct Binding {
  Range range;
  uint32_t kind = BP_MEMORY_DEVICE;
  uint8_t alignment_log2 = 0;         // alignment of the start of the range
  uint8_t memory_alignment_log2 = 0;  // alignment of the start of the buffer
  uint8_t need_log2 = 0;              // maximum alignment that a recorded operand inside the range states
  bool written = false;               // recorded work writes to the range
  bool read_only = false;             // the memory may not be written
};

// Resolves binding `index` of the caller. Throws INVALID_ARGUMENT unless the range is inside a
// buffer of `device`.
Binding resolve_binding(const char* function, const Device& device, const bph_graph_binding& given, uint32_t index);

// Throws INVALID_ARGUMENT if two of the ranges overlap. `order` is scratch memory with as many
// elements as `ranges`.
void check_distinct(const char* function, const std::vector<Range>& ranges, std::vector<uint32_t>& order);

// A set of ranges, in which ranges that touch are joined.
class RangeSet {
 public:
  void add(const Range& range) { ranges_.push_back(range); }
  size_t size() const noexcept { return ranges_.size(); }
  void truncate(size_t size) noexcept { ranges_.resize(size); }
  // Sorts and joins the ranges. Call this function after the last `add`.
  void close();
  bool overlaps(const Range& range) const noexcept;

 private:
  std::vector<Range> ranges_;
};

}  // namespace backplane::core
