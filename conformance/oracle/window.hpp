// SPDX-License-Identifier: Apache-2.0
// Windows over one to three spatial dimensions, for convolutions and pooling.
#pragma once

#include <array>

#include "composite.hpp"

namespace backplane::conformance::oracle {

using Extents = std::array<int64_t, 3>;  // missing dimensions have extent 1

inline int64_t volume(const Extents& extents) { return extents[0] * extents[1] * extents[2]; }
inline Extents position_of(int64_t index, const Extents& extents) {
  return {index / extents[2] / extents[1], index / extents[2] % extents[1], index % extents[2]};
}
// Returns the extents of the spatial dimensions, which follow the first two dimensions.
inline Extents spatial(const Tensor& tensor) {
  Extents extents{1, 1, 1};
  for (size_t d = 2; d < tensor.shape.size(); ++d) extents[d - 2] = tensor.shape[d];
  return extents;
}

struct Window {
  Extents kernel, stride{1, 1, 1}, dilation{1, 1, 1}, pad{0, 0, 0};

  template <typename Attributes>
  Window(const Attributes& attributes, const Extents& kernel_extents) : kernel(kernel_extents) {
    for (uint32_t d = 0; d < attributes.spatial_rank; ++d) {
      stride[d] = attributes.stride[d];
      dilation[d] = attributes.dilation[d];
      pad[d] = attributes.pad_begin[d];
    }
  }
  // Returns the flat index in `image` of the element at tap `tap` of the window at `at`. Returns -1
  // if the tap is in the padding.
  int64_t seen(const Extents& at, int64_t tap, const Extents& image) const {
    const Extents offset = position_of(tap, kernel);
    int64_t index = 0;
    for (size_t d = 0; d < 3; ++d) {
      const int64_t position = at[d] * stride[d] - pad[d] + offset[d] * dilation[d];
      if (position < 0 || position >= image[d]) return -1;
      index = index * image[d] + position;
    }
    return index;
  }
};

}  // namespace backplane::conformance::oracle
