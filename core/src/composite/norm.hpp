// SPDX-License-Identifier: Apache-2.0
// Declares the common part of normalisations and their gradients: the reduced axes, and the shapes
// of parameters and statistics.
#pragma once

#include "composite/families.hpp"

namespace backplane::core::composite {

struct Groups {
  // The shape to which x is reshaped. Dimensions may be merged, or channels may be split into
  // groups.
  Extents shape;
  Extents parameter;  // shape of gamma and beta, with extent 1 in the axes along which they are broadcast
  Extents statistic;  // shape of mean and rstd, with extent 1 in `axes`
  uint32_t axes = 0;  // mask of the axes over which a statistic is computed
  int64_t count = 1;  // number of elements over which a statistic is computed
};
Groups groups_by_axes(const Extents& x, uint32_t axes);
// Returns the groups of group_norm, for x reshaped to [N, groups, C / groups, ..].
Groups groups_by_channels(const Extents& x, int64_t groups);
Groups groups_by_batch(const Extents& x);  // groups of batch_norm, for x reshaped to [N, C, ..]

Value mean_of(Builder& b, const Value& x, const Groups& groups);
// Returns 1 / sqrt(mean(x^2) + epsilon).
Value rstd_of(Builder& b, const Value& x, const Groups& groups, double epsilon);

}  // namespace backplane::core::composite
