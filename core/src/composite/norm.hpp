// SPDX-License-Identifier: Apache-2.0
// What normalisations and their backward share: what they go over, and how parameters and statistics lie beside it.
#pragma once

#include "composite/families.hpp"

namespace backplane::core::composite {

struct Groups {
  Extents shape;      // that of x as it is normalised: some dimensions of x may be one, or a group and its channels two
  Extents parameter;  // of gamma and beta: 1 where they repeat
  Extents statistic;  // of mean and rstd: 1 in `axes`
  uint32_t axes = 0;  // what mean and variance are taken over
  int64_t count = 1;  // elements of a group
};
Groups groups_by_axes(const Extents& x, uint32_t axes);
Groups groups_by_channels(const Extents& x, int64_t groups);  // group_norm: [N, groups, C / groups, ..]
Groups groups_by_batch(const Extents& x);                     // batch_norm: [N, C, ..]

Value mean_of(Builder& b, const Value& x, const Groups& groups);
// 1 / root(mean of x^2 + epsilon)
Value rstd_of(Builder& b, const Value& x, const Groups& groups, double epsilon);

}  // namespace backplane::core::composite
