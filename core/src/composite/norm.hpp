// SPDX-License-Identifier: Apache-2.0
// Shared by normalisations and their gradients: the reduced axes, and the shapes of parameters and
// statistics.
#pragma once

#include "composite/families.hpp"

namespace backplane::core::composite {

struct Groups {
  // Of x for the normalisation: dimensions may be merged, or channels split into groups.
  Extents shape;
  Extents parameter;  // of gamma and beta: 1 where they are broadcast
  Extents statistic;  // of mean and rstd: 1 in `axes`
  uint32_t axes = 0;  // the axes of mean and variance
  int64_t count = 1;  // elements of a group
};
Groups groups_by_axes(const Extents& x, uint32_t axes);
// Group_norm: [N, groups, C / groups, ..].
Groups groups_by_channels(const Extents& x, int64_t groups);
Groups groups_by_batch(const Extents& x);  // batch_norm: [N, C, ..]

Value mean_of(Builder& b, const Value& x, const Groups& groups);
// 1 / sqrt(mean of x^2 + epsilon)
Value rstd_of(Builder& b, const Value& x, const Groups& groups, double epsilon);

}  // namespace backplane::core::composite
