// SPDX-License-Identifier: Apache-2.0
// The loops of norm kernels. A row is the set of elements that are normalised together.
#pragma once

#include "ops/reduction.hpp"

namespace backplane::vulkan {

// A dimension of the loops, with the corresponding axis of each operand. The axis is -1 if the
// operand broadcasts along the dimension. group_norm splits the channel axis into two dimensions,
// groups and channels per group. The stride between groups is the stride of the channel axis times
// `factor`.
struct Dimension {
  int64_t extent;
  int axis;       // axis of x
  int statistic;  // axis of mean and rstd
  int parameter;  // axis of gamma and beta
  int64_t factor = 1;
};

struct Geometry {
  uint32_t rank = 0;
  Dimension dimensions[kReductionRank];
  void add(const Dimension& dimension) { dimensions[rank++] = dimension; }

  static Geometry by_axes(const View& x, uint32_t axes) {
    Geometry out;
    int parameters = 0;
    for (uint32_t i = 0; i < x.rank; ++i) {
      const bool inside = (axes >> i & 1u) != 0;
      const int axis = static_cast<int>(i);
      out.add({x.shape[i], axis, inside ? -1 : axis, inside ? parameters++ : -1});
    }
    return out;
  }
  static Geometry by_channels(const View& x, int64_t groups) {
    const int64_t channels = x.shape[1] / groups;
    Geometry out;
    out.add({x.shape[0], 0, 0, -1});
    out.add({groups, 1, 1, 0, channels});
    out.add({channels, 1, -1, 0});
    out.add_plane(x);
    return out;
  }
  static Geometry by_batch(const View& x) {
    Geometry out;
    out.add({x.shape[0], 0, -1, -1});
    out.add({x.shape[1], 1, 0, 0});
    out.add_plane(x);
    return out;
  }

 private:
  void add_plane(const View& x) {
    for (uint32_t i = 2; i < x.rank; ++i) add({x.shape[i], static_cast<int>(i), -1, -1});
  }
};

using Role = int Dimension::*;

// The loops of a norm kernel, and its operands.
class NormNest {
 public:
  // Dimensions whose member `outer` is an axis (not -1) enumerate rows. All other dimensions enumerate the elements of
  // a row.
  NormNest(const Geometry& geometry, Role outer) {
    for (const bool inner : {false, true}) {
      for (uint32_t i = 0; i < geometry.rank; ++i) {
        const Dimension& dimension = geometry.dimensions[i];
        if ((dimension.*outer < 0) != inner) continue;
        order_[nest_.rank] = dimension;
        nest_.add_dimension(dimension.extent, inner);
      }
    }
  }
  void add(const View* view, Role role) {
    ReductionNest::Operand& operand = nest_.add_broadcast(view);
    if (operand.view == nullptr) return;
    for (uint32_t d = 0; d < nest_.rank; ++d) {
      const int axis = order_[d].*role;
      if (axis < 0) continue;
      // mean and rstd have a group axis, so `factor` does not apply. Other operands have a channel
      // axis.
      const int64_t factor = role == &Dimension::statistic ? 1 : order_[d].factor;
      operand.strides[d] = view->strides[axis] * factor * element_bytes(*view);
    }
  }
  ReductionNest& merged() {
    nest_.merge();
    return nest_;
  }

 private:
  ReductionNest nest_;
  Dimension order_[kReductionRank];
};

}  // namespace backplane::vulkan
