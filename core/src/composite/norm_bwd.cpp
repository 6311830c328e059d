// SPDX-License-Identifier: Apache-2.0
// Lowers norm_bwd: the gradients of all four normalisations. The formula assumes that mean and rstd
// were computed from x, so it does not apply to running statistics.
#include "composite/norm.hpp"

namespace backplane::core::composite {

namespace {

Groups groups_of(const bp_norm_bwd_attributes& attributes, const Extents& x) {
  switch (attributes.norm) {
    case BP_NORM_GROUP:
      return groups_by_channels(x, attributes.groups);
    case BP_NORM_BATCH:
      return groups_by_batch(x);
    default:
      return groups_by_axes(x, attributes.axes);
  }
}

// Stores the sum of `value` over the dimensions in which a parameter is broadcast.
void store_sum(Builder& b, uint32_t output, const Value& value, const Groups& groups) {
  if (!b.has_output(output)) return;
  uint32_t axes = 0;
  for (uint32_t d = 0; d < groups.parameter.size(); ++d) {
    if (groups.parameter[d] == 1) axes |= 1u << d;
  }
  b.store(b.output(output), b.reshape(b.sum(value, axes), b.output(output).shape()));
}

}  // namespace

// Let r = rstd, g = dy gamma and s = (x - mean) r. Then dx = r (g - mean(g) - s mean(g s)). For
// rms_norm, the mean of x and mean(g) are replaced by 0.
void norm_bwd(Builder& b) {
  const auto& attributes = b.attributes<bp_norm_bwd_attributes>();
  const Groups groups = groups_of(attributes, b.input(1).shape());
  const bool centred = attributes.norm != BP_NORM_RMS;
  const Value dy = b.widen(b.reshape(b.input(0), groups.shape));
  Value distance = b.widen(b.reshape(b.input(1), groups.shape));
  if (centred) {
    distance = b.sub(distance, b.has_input(3) ? b.reshape(b.load(3), groups.statistic) : mean_of(b, distance, groups));
  }
  const Value rstd = b.has_input(4) ? b.reshape(b.load(4), groups.statistic)
                                    : rstd_of(b, distance, groups, static_cast<double>(attributes.epsilon));
  const Value straight = b.mul(distance, rstd);
  if (b.has_output(1)) store_sum(b, 1, b.mul(dy, straight), groups);
  store_sum(b, 2, dy, groups);
  const Value gradient = b.has_input(2) ? b.mul(dy, b.reshape(b.load(2), groups.parameter)) : dy;
  const Value projection = b.mul(straight, mean_of(b, b.mul(gradient, straight), groups));
  const Value remainder =
      centred ? b.sub(b.sub(gradient, mean_of(b, gradient, groups)), projection) : b.sub(gradient, projection);
  b.store(b.output(0), b.reshape(b.mul(remainder, rstd), b.output(0).shape()));
}

}  // namespace backplane::core::composite
