// SPDX-License-Identifier: Apache-2.0
// The dimensions of norms. A row is the set of elements that are normalised together.
#pragma once

#include "ops/tile.hpp"

namespace backplane::simt {

#include "device/norm_params.h"

// A dimension with the corresponding axis of each operand. The axis is -1 if the operand is
// broadcast along the dimension. group_norm divides the channel axis into groups and channels per
// group. The stride between groups is the stride of the channel axis times `factor`.
struct NormDimension {
  int64_t extent;
  int axis;       // axis of x
  int statistic;  // axis of mean and rstd
  int parameter;  // axis of gamma and beta
  int64_t factor = 1;
};
using NormRole = int NormDimension::*;

struct NormGeometry {
  uint32_t rank = 0;
  NormDimension dimensions[SIMT_TILE_RANK];

  static NormGeometry by_axes(const View& x, uint32_t axes);
  static NormGeometry by_groups(const View& x, int64_t groups);
  static NormGeometry by_batch(const View& x);

  struct Operand {
    const View* view;  // null if the operand is absent
    NormRole role;
  };
  // Returns loops over all dimensions. `rows` points to a member of NormDimension. A dimension
  // enumerates rows if this member is an axis, and the elements of a row if this member is -1.
  TileNest nest(NormRole rows, std::initializer_list<Operand> operands) const;
  // Returns a dense f32 view of the mean or rstd of all rows.
  View statistic_at(const Place& place) const;

 private:
  void add(const NormDimension& dimension) { dimensions[rank++] = dimension; }
  void add_plane(const View& x);
};

// Enqueues the kernel norm_forward, or norm_teams. device/norm.h describes the operands.
using NormOperands = TileOperands<11, 6>;
kit::Status launch_norm(Launcher& launcher, const TileKernels& kernels, const TileNest& nest,
                        const NormOperands& operands, uint32_t option, float epsilon, float momentum,
                        std::array<int64_t, 4> running_strides);

}  // namespace backplane::simt
