// SPDX-License-Identifier: Apache-2.0
// Checks the ranges that a launch of a graph may replace.
#include "graph/range.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>

#include "base/error.hpp"
#include "base/handle.hpp"
#include "memory/buffer.hpp"

namespace backplane::core {

namespace {

bool before(const Range& a, const Range& b) noexcept {
  return std::tuple(reinterpret_cast<uintptr_t>(a.buffer), a.begin, a.end) <
         std::tuple(reinterpret_cast<uintptr_t>(b.buffer), b.begin, b.end);
}

}  // namespace

Binding resolve_binding(const char* function, const Device& device, const bph_graph_binding& given, uint32_t index) {
  const Buffer& buffer = require<Buffer>(given.buffer, function);
  if (buffer.device != &device) {
    throw Error(BP_INVALID_ARGUMENT, "{}: binding {} is of {}, the stream of {}{}; use buffers of one open device",
                function, index, buffer.device->name, device.name,
                buffer.device->name == device.name ? " as opened another time" : "");
  }
  if (given.bytes == 0 || given.offset > buffer.bytes || given.bytes > buffer.bytes - given.offset) {
    throw Error(BP_INVALID_ARGUMENT,
                "{}: binding {} has {} bytes from offset {} of a buffer of {} bytes; pass at least 1 byte inside the "
                "buffer",
                function, index, given.bytes, given.offset, buffer.bytes);
  }
  Binding binding;
  const uint64_t begin = buffer.plugin_offset + given.offset;
  binding.range = {buffer.plugin_buffer, begin, begin + given.bytes};
  binding.kind = buffer.kind;
  binding.read_only = buffer.read_only;
  binding.alignment_log2 =
      static_cast<uint8_t>(std::countr_zero(given.offset | (uint64_t{1} << buffer.alignment_log2)));
  binding.memory_alignment_log2 = buffer.alignment_log2;
  return binding;
}

void check_distinct(const char* function, const std::vector<Range>& ranges, std::vector<uint32_t>& order) {
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return before(ranges[a], ranges[b]); });
  for (size_t i = 1; i < order.size(); ++i) {
    if (!ranges[order[i - 1]].overlaps(ranges[order[i]])) continue;
    throw Error(BP_INVALID_ARGUMENT, "{}: bindings {} and {} overlap; pass ranges that share no byte", function,
                std::min(order[i - 1], order[i]), std::max(order[i - 1], order[i]));
  }
}

void RangeSet::close() {
  std::sort(ranges_.begin(), ranges_.end(), before);
  size_t kept = 0;
  for (const Range& range : ranges_) {
    if (kept != 0 && ranges_[kept - 1].buffer == range.buffer && range.begin <= ranges_[kept - 1].end) {
      ranges_[kept - 1].end = std::max(ranges_[kept - 1].end, range.end);
    } else {
      ranges_[kept++] = range;
    }
  }
  ranges_.resize(kept);
}

bool RangeSet::overlaps(const Range& range) const noexcept {
  // The ranges are disjoint, so only the last range that begins before the end of `range` can
  // overlap `range`.
  const auto next = std::lower_bound(ranges_.begin(), ranges_.end(), Range{range.buffer, range.end, 0}, before);
  return next != ranges_.begin() && std::prev(next)->overlaps(range);
}

}  // namespace backplane::core
