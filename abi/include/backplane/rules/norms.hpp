// SPDX-License-Identifier: Apache-2.0
// Shape checks of the normalisations: axes, groups and statistics.
#pragma once

#include <backplane/rules/bound.hpp>

namespace backplane::rules::detail {

inline void require_groups(uint32_t groups, int64_t channels, const char* what) {
  if (groups == 0) Bound::refuse("groups is 0; it must be at least 1");
  if (channels % groups != 0) Bound::fail(groups, " groups do not divide the ", channels, ' ', what);
}

// The extents of x in the normalised `axes`, and the extents of the statistics.
struct Axes {
  int64_t inside[BP_MAX_RANK];
  int64_t kept[BP_MAX_RANK];
  uint32_t count = 0;
  uint32_t rank = 0;

  Axes(const Bound& bound, uint32_t axes) : rank(bound.list('*').rank) {
    const int64_t* x = bound.list('*').extents;
    if (axes == 0) Bound::refuse("axes is 0: there is nothing to normalise over; set a bit for each dimension");
    if (axes >> rank != 0) Bound::fail("axes is ", mask_text(axes), "; the rank is ", rank);
    for (uint32_t d = 0; d < rank; ++d) {
      const bool in = (axes >> d & 1u) != 0;
      if (in) inside[count++] = x[d];
      kept[d] = in ? 1 : x[d];
    }
  }
  std::span<const int64_t> parameter() const { return {inside, count}; }
  std::span<const int64_t> statistic() const { return {kept, rank}; }
};
inline constexpr const char* kParameter = "the extents of the axes";
inline constexpr const char* kStatistic = "x with extent 1 in the axes";

inline void check_norm(const Bound& bound) {
  const auto& attributes = bound.attributes<bp_norm_attributes>();
  const Axes axes(bound, attributes.axes);
  for (uint32_t i = 1; i < 3; ++i) {
    bound.require_input(i, axes.parameter(), kParameter);
    bound.require_output(i, axes.statistic(), kStatistic);
  }
}

inline void check_group_norm(const Bound& bound) {
  const auto& attributes = bound.attributes<bp_group_norm_attributes>();
  require_groups(attributes.groups, bound.extent('C'), "channels");
  if (bound.extent('G') >= 0 && bound.extent('G') != attributes.groups) {
    Bound::fail("the statistics have ", bound.extent('G'), " groups; groups is ", attributes.groups);
  }
}

// Running statistics are required if they normalise x, or if new running statistics are computed.
inline void check_batch_norm(const Bound& bound) {
  const auto& attributes = bound.attributes<bp_batch_norm_attributes>();
  const bool training = attributes.training != 0;
  if (training && attributes.unbiased != 0) {
    const auto plane = bound.list('*').span();
    const bool single = std::all_of(plane.begin(), plane.end(), [](int64_t extent) { return extent == 1; });
    if (single && bound.extent('N') == 1) {
      Bound::refuse(
          "a channel has 1 element, whose unbiased variance is not defined; set unbiased to 0, or pass more elements");
    }
  }
  for (uint32_t i = 3; i < 5; ++i) {
    if (bound.has_input(i) || (training && !bound.has_output(i - 2))) continue;
    Bound::fail("input ", i, ", the running ", i == 3 ? "mean" : "variance", ", is missing; ",
                training ? "output " : "only training goes without", training ? text(i - 2, " needs it") : "");
  }
}

inline void check_norm_bwd(const Bound& bound) {
  const auto& attributes = bound.attributes<bp_norm_bwd_attributes>();
  const auto x = bound.list('*').span();
  if (attributes.norm != BP_NORM_GROUP && attributes.groups != 0) {
    Bound::refuse("groups is ", attributes.groups, "; only the backward of group_norm has any, set it to 0");
  }
  if (attributes.norm == BP_NORM_RMS && bound.has_input(3)) {
    Bound::refuse("input 3, the mean, is there; rms_norm has none");
  }
  if (attributes.norm == BP_NORM_LAYER || attributes.norm == BP_NORM_RMS) {
    const Axes axes(bound, attributes.axes);
    bound.require_input(2, axes.parameter(), kParameter);
    for (uint32_t i = 1; i < 3; ++i) bound.require_output(i, axes.parameter(), kParameter);
    for (uint32_t i = 3; i < 5; ++i) bound.require_input(i, axes.statistic(), kStatistic);
    return;
  }
  if (attributes.axes != 0) {
    Bound::refuse("axes is ", mask_text(attributes.axes), "; only layer_norm and rms_norm have any, set it to 0");
  }
  if (x.size() < 2) Bound::fail("x has rank ", x.size(), "; it must be [N,C,..]");
  const int64_t channels[] = {x[1]};
  const int64_t grouped[] = {x[0], attributes.groups};
  if (attributes.norm == BP_NORM_GROUP) require_groups(attributes.groups, x[1], "channels");
  bound.require_input(2, channels, "the channels");
  for (uint32_t i = 1; i < 3; ++i) bound.require_output(i, channels, "the channels");
  for (uint32_t i = 3; i < 5; ++i) {
    if (attributes.norm == BP_NORM_GROUP) bound.require_input(i, grouped, "batch and groups");
    if (attributes.norm == BP_NORM_BATCH) bound.require_input(i, channels, "the channels");
  }
}

}  // namespace backplane::rules::detail
