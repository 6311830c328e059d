// SPDX-License-Identifier: Apache-2.0
// Sliding windows over the one to three spatial dimensions of [N,C,..], for convolutions and pools.
#pragma once

#include <algorithm>

#include "composite/families.hpp"

namespace backplane::core::composite {

struct Window {
  Extents image, kernel, stride, dilation, begin, padded, positions;
  int64_t taps = 0;     // number of kernel elements
  int64_t results = 0;  // number of windows

  template <class Attributes>
  Window(const Attributes& attributes, Extents image_extents, Extents kernel_extents)
      : image(std::move(image_extents)), kernel(std::move(kernel_extents)) {
    for (size_t d = 0; d < image.size(); ++d) {
      stride.push_back(attributes.stride[d]);
      dilation.push_back(attributes.dilation[d]);
      begin.push_back(attributes.pad_begin[d]);
      padded.push_back(image[d] + attributes.pad_begin[d] + attributes.pad_end[d]);
      positions.push_back((padded[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1);
    }
    taps = count_of(kernel);
    results = count_of(positions);
  }
  uint32_t rank() const { return static_cast<uint32_t>(image.size()); }
};

// Concatenates the three lists of extents.
inline Extents joined(std::initializer_list<int64_t> first, const Extents& more, const Extents& most = {}) {
  Extents all(first);
  all.insert(all.end(), more.begin(), more.end());
  all.insert(all.end(), most.begin(), most.end());
  return all;
}

inline Extents spatial(const Value& value) { return {value.view.shape + 2, value.view.shape + value.rank()}; }

// Returns the part of a padded image without the padding.
inline Value inside(Value padded, const Window& window) {
  for (uint32_t d = 0; d < window.rank(); ++d) padded = slice(padded, 2 + d, window.begin[d], window.image[d]);
  return padded;
}

// Pads x[N,C,image] with `value` and casts it to `dtype`. Returns x itself if x needs no padding
// and no cast.
inline Value pad(Builder& b, const Value& x, const Window& window, uint32_t dtype, double value) {
  if (window.padded == window.image) return b.cast(x, dtype);
  const Value padded = b.temporary(dtype, joined({x.extent(0), x.extent(1)}, window.padded));
  b.fill(padded, value);
  b.store(inside(padded, window), x);
  return padded;
}

// Views [N,C,padded] as [N,C,positions..,kernel..]. Elements of this view overlap.
inline Value unfold(Value padded, const Window& window) {
  for (uint32_t d = 0; d < window.rank(); ++d) {
    padded = windows(padded, 2 + d, window.positions[d], window.stride[d], window.kernel[d], window.dilation[d]);
  }
  return padded;
}

// Returns how many items of `bytes` bytes fit into a tile: at least 1, and at most max(count, 1).
inline int64_t tile_of(int64_t count, int64_t bytes) {
  return std::clamp<int64_t>(tile_bytes(count_of({count, bytes})) / std::max<int64_t>(bytes, 1), 1,
                             std::max<int64_t>(count, 1));
}

// Calls body(start, extent) for each tile of [0, count). If count is 0, calls body once, with an
// empty tile.
template <class Body>
void each_tile(int64_t count, int64_t tile, Body body) {
  for (int64_t start = 0; start == 0 || start < count; start += tile) body(start, std::min(tile, count - start));
}

}  // namespace backplane::core::composite
