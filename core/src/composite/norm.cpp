// SPDX-License-Identifier: Apache-2.0
// Lowers layer_norm, rms_norm, group_norm and batch_norm. The first pass computes the mean, and the
// second pass computes the variance around the mean.
#include "composite/norm.hpp"

namespace backplane::core::composite {

Groups groups_by_axes(const Extents& x, uint32_t axes) {
  Groups groups{x, x, x, axes};
  for (uint32_t d = 0; d < x.size(); ++d) {
    const bool inside = (axes >> d & 1) != 0;
    (inside ? groups.statistic : groups.parameter)[d] = 1;
    if (inside) groups.count *= x[d];
  }
  return groups;
}

Groups groups_by_channels(const Extents& x, int64_t groups) {
  const int64_t plane = count_of(Extents(x.begin() + 2, x.end())), channels = x[1] / groups;
  return {{x[0], groups, channels, plane}, {1, groups, channels, 1}, {x[0], groups, 1, 1}, 0b1100, channels * plane};
}

Groups groups_by_batch(const Extents& x) {
  const int64_t plane = count_of(Extents(x.begin() + 2, x.end()));
  return {{x[0], x[1], plane}, {1, x[1], 1}, {1, x[1], 1}, 0b101, x[0] * plane};
}

Value mean_of(Builder& b, const Value& x, const Groups& groups) {
  return b.div(b.sum(x, groups.axes), b.constant(static_cast<double>(groups.count)));
}

Value rstd_of(Builder& b, const Value& x, const Groups& groups, double epsilon) {
  return b.unary(BP_OP_RSQRT, b.add(mean_of(b, b.mul(x, x), groups), b.constant(epsilon)));
}

namespace {

Value parameter(Builder& b, uint32_t index, const Groups& groups) { return b.reshape(b.load(index), groups.parameter); }

// Stores the value if the output is present, and returns a value that later steps may read.
Value keep(Builder& b, uint32_t output, const Value& value) {
  if (!b.has_output(output)) return value;
  return b.reshape(b.store(b.output(output), b.reshape(value, b.output(output).shape())), value.shape());
}

// Applies the optional gamma and beta, and stores y.
void finish(Builder& b, Value y, const Groups& groups, uint32_t gamma, uint32_t beta) {
  if (b.has_input(gamma)) y = b.mul(y, parameter(b, gamma, groups));
  if (beta != 0 && b.has_input(beta)) y = b.add(y, parameter(b, beta, groups));
  b.store(b.output(0), b.reshape(y, b.output(0).shape()));
}

void centred_norm(Builder& b, const Groups& groups, double epsilon) {
  const Value x = b.widen(b.reshape(b.input(0), groups.shape));
  const Value mean = keep(b, 1, mean_of(b, x, groups));
  const Value distance = b.sub(x, mean);
  const Value rstd = keep(b, 2, rstd_of(b, distance, groups, epsilon));
  finish(b, b.mul(distance, rstd), groups, 1, 2);
}

}  // namespace

void layer_norm(Builder& b) {
  const auto& attributes = b.attributes<bp_norm_attributes>();
  centred_norm(b, groups_by_axes(b.input(0).shape(), attributes.axes), static_cast<double>(attributes.epsilon));
}

void group_norm(Builder& b) {
  const auto& attributes = b.attributes<bp_group_norm_attributes>();
  centred_norm(b, groups_by_channels(b.input(0).shape(), attributes.groups), static_cast<double>(attributes.epsilon));
}

void rms_norm(Builder& b) {
  const auto& attributes = b.attributes<bp_norm_attributes>();
  const Groups groups = groups_by_axes(b.input(0).shape(), attributes.axes);
  const Value x = b.load(0);
  const Value rstd = keep(b, 1, rstd_of(b, x, groups, static_cast<double>(attributes.epsilon)));
  finish(b, b.mul(x, rstd), groups, 1, 0);
}

// Applies batch_norm. Inputs: x, gamma, beta, running mean and running variance. Outputs: y, the
// new running mean and variance, the batch's mean, and the rstd with which y is computed. If
// `training` is 0, the running statistics normalise x and do not change. With `unbiased`, the new
// running variance uses the unbiased variance of the batch. A training call without running outputs
// does not read the running inputs.
void batch_norm(Builder& b) {
  const auto& attributes = b.attributes<bp_batch_norm_attributes>();
  const Groups groups = groups_by_batch(b.input(0).shape());
  const bool training = attributes.training != 0;
  const double epsilon = static_cast<double>(attributes.epsilon), share = static_cast<double>(attributes.momentum);
  const Value x = b.widen(b.reshape(b.input(0), groups.shape));
  Value old_mean, old_variance;
  if (b.has_input(3)) old_mean = parameter(b, 3, groups);
  if (b.has_input(4)) old_variance = parameter(b, 4, groups);
  Value mean = old_mean, variance = old_variance;
  if (training || b.has_output(3)) {
    const Value batch_mean = keep(b, 3, mean_of(b, x, groups));
    if (training) mean = batch_mean;
  }
  const Value distance = b.sub(x, mean);
  if (training) variance = mean_of(b, b.mul(distance, distance), groups);
  const auto running = [&](uint32_t output, const Value& before, const Value& now) {
    if (!b.has_output(output)) return;
    Value next = before;
    if (training) next = b.add(b.mul(before, b.constant(1 - share)), b.mul(now, b.constant(share)));
    b.store(b.output(output), b.reshape(next, b.output(output).shape()));
  };
  running(1, old_mean, mean);
  Value estimate = variance;
  if (training && attributes.unbiased != 0 && b.has_output(2)) {
    const double count = static_cast<double>(groups.count);
    estimate = b.mul(variance, b.constant(count / (count - 1)));
  }
  running(2, old_variance, estimate);
  const Value rstd = keep(b, 4, b.unary(BP_OP_RSQRT, b.add(variance, b.constant(epsilon))));
  finish(b, b.mul(distance, rstd), groups, 1, 2);
}

}  // namespace backplane::core::composite
