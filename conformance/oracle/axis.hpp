// SPDX-License-Identifier: Apache-2.0
// Reads the attributes of a `Call`, and views a dense tensor along one axis.
#pragma once

#include <algorithm>
#include <cstring>

#include "oracle.hpp"

namespace backplane::conformance::oracle {

template <typename Attributes>
Attributes attributes_of(const Call& call) {
  Attributes attributes{};
  std::memcpy(&attributes, call.attributes.data(), std::min(call.attributes.size(), sizeof(attributes)));
  return attributes;
}

// Views a dense tensor as three dimensions: `outer` before the axis, `extent` along the axis, and
// `inner` after the axis.
struct AxisView {
  int64_t outer = 1, extent = 1, inner = 1;
  AxisView(const Tensor& tensor, uint32_t axis) : extent(tensor.shape[axis]) {
    for (uint32_t d = 0; d < axis; ++d) outer *= tensor.shape[d];
    for (size_t d = axis + 1; d < tensor.shape.size(); ++d) inner *= tensor.shape[d];
  }
  int64_t at(int64_t o, int64_t i, int64_t j) const { return (o * extent + i) * inner + j; }
  template <typename Visit>
  void each(Visit visit) const {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t j = 0; j < inner; ++j) visit(o, j);
    }
  }
};

}  // namespace backplane::conformance::oracle
