// SPDX-License-Identifier: Apache-2.0
// Shared by normalisations and their gradients: the reduced axes, and the shapes of parameters and
// statistics.
#pragma once

#include "composite/families.hpp"

namespace backplane::core::composite {

struct Groups {
  // The shape of x for the normalisation. Dimensions may be merged, or channels split into groups.
  Extents shape;
  Extents parameter;  // the shape of gamma and beta, with 1 where they are broadcast
  Extents statistic;  // the shape of mean and rstd, with 1 in `axes`
  uint32_t axes = 0;  // the axes of mean and variance
  int64_t count = 1;  // elements per group
};
Groups groups_by_axes(const Extents& x, uint32_t axes);
// For group_norm: [N, groups, C / groups, ..].
Groups groups_by_channels(const Extents& x, int64_t groups);
Groups groups_by_batch(const Extents& x);  // for batch_norm: [N, C, ..]

Value mean_of(Builder& b, const Value& x, const Groups& groups);
// 1 / sqrt(mean of x^2 + epsilon)
Value rstd_of(Builder& b, const Value& x, const Groups& groups, double epsilon);

}  // namespace backplane::core::composite
