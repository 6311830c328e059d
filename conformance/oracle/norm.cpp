// SPDX-License-Identifier: Apache-2.0
// Oracles of layer_norm, rms_norm, group_norm and batch_norm.
#include "norm.hpp"

#include "operators.hpp"

namespace backplane::conformance::oracle {

Grouping group_axes(const std::vector<int64_t>& shape, uint32_t axes) {
  Grouping grouping;
  int64_t count = 1, groups = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    count *= shape[d];
    if ((axes >> d & 1) == 0) groups *= shape[d];
  }
  grouping.members.resize(static_cast<size_t>(groups));
  std::vector<int64_t> index(shape.size());
  for (int64_t i = 0; i < count; ++i) {
    int64_t group = 0, parameter = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      int64_t& within = (axes >> d & 1) != 0 ? parameter : group;
      within = within * shape[d] + index[d];
    }
    grouping.members[static_cast<size_t>(group)].push_back(i);
    grouping.parameter.push_back(parameter);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
  return grouping;
}

namespace {

template <typename GroupOf>
Grouping group_planes(const std::vector<int64_t>& shape, int64_t groups, GroupOf group_of) {
  Grouping grouping;
  grouping.members.resize(static_cast<size_t>(groups));
  int64_t plane = 1;
  for (size_t d = 2; d < shape.size(); ++d) plane *= shape[d];
  for (int64_t i = 0; i < shape[0] * shape[1] * plane; ++i) {
    const int64_t batch = i / plane / shape[1], channel = i / plane % shape[1];
    grouping.members[static_cast<size_t>(group_of(batch, channel))].push_back(i);
    grouping.parameter.push_back(channel);
  }
  return grouping;
}

}  // namespace

Grouping group_channels(const std::vector<int64_t>& shape, int64_t groups) {
  const int64_t channels = shape[1] / groups;
  return group_planes(shape, shape[0] * groups,
                      [=](int64_t batch, int64_t channel) { return batch * groups + channel / channels; });
}

Grouping group_batch(const std::vector<int64_t>& shape) {
  return group_planes(shape, shape[1], [](int64_t, int64_t channel) { return channel; });
}

Moments moments_of(const Tensor& x, const std::vector<int64_t>& members) {
  Moments moments;
  moments.count = static_cast<int64_t>(members.size());
  const long double n = count_of(moments.count);
  for (const int64_t i : members) {
    moments.mean += value_at(x, i);
    moments.magnitude += std::fabs(value_at(x, i));
  }
  moments.mean /= n;
  moments.magnitude /= n;
  for (const int64_t i : members) {
    const long double distance = value_at(x, i) - moments.mean;
    moments.variance += distance * distance;
  }
  moments.variance /= n;
  return moments;
}

namespace {

// Computes (x - mean) * r * gamma + beta with the bound from docs/spec/accuracy.md. `loss` is the
// result of norm_loss.
Element normalised(uint32_t dtype, long double x, long double mean, long double magnitude, long double r,
                   long double gamma, long double beta, long double loss) {
  const long double straight = (x - mean) * r;
  // The comment on rstd_of explains the case of an infinite rstd.
  if (std::isinf(r) && magnitude != 0) return anything(dtype, straight);
  return near(dtype, straight * gamma + beta,
              loss * (std::fabs(straight) + r * magnitude) * std::fabs(gamma) + 2 * unit(dtype) * std::fabs(beta));
}

Element mean_of(uint32_t dtype, const Moments& moments) {
  return near(dtype, moments.mean, (rho(moments.count) + 5) * unit(dtype) * moments.magnitude);
}

// Without epsilon, a variance of 0 gives an infinite rstd, and y is 0 / 0. The suite tests this
// case only with elements that are 0. With other equal elements, a rounding error of the mean can
// make the computed variance greater than 0.
//
// The relative error of the variance is twice the relative error of a distance from the mean. The
// square root halves this error.
Element rstd_of(uint32_t dtype, const Moments& moments, long double r) {
  if (std::isinf(r) && moments.magnitude != 0) return anything(dtype, r);
  return near(dtype, r, norm_loss(dtype, moments.count) * (1 + r * moments.magnitude) * r);
}

// Computes the statistics and the normalised elements of each group.
std::vector<Expected> by_group(const Call& call, const Grouping& grouping, long double epsilon) {
  const Tensor& x = call.inputs[0];
  const Tensor *gamma = optional(call.inputs, 1), *beta = optional(call.inputs, 2);
  std::vector<Expected> expected = outputs_of(call);
  for (size_t g = 0; g < grouping.members.size(); ++g) {
    const Moments moments = moments_of(x, grouping.members[g]);
    const long double r = 1 / std::sqrt(moments.variance + epsilon);
    for (const int64_t i : grouping.members[g]) {
      const int64_t p = grouping.parameter[static_cast<size_t>(i)];
      expected[0].elements[static_cast<size_t>(i)] =
          normalised(call.outputs[0].dtype, value_at(x, i), moments.mean, moments.magnitude, r, value_or(gamma, p, 1),
                     value_or(beta, p, 0), norm_loss(call.outputs[0].dtype, moments.count));
    }
    if (optional(call.outputs, 1) != nullptr) expected[1].elements[g] = mean_of(call.outputs[1].dtype, moments);
    if (optional(call.outputs, 2) != nullptr) expected[2].elements[g] = rstd_of(call.outputs[2].dtype, moments, r);
  }
  return expected;
}

}  // namespace

std::vector<Expected> layer_norm(const Call& call) {
  const auto attributes = attributes_of<bp_norm_attributes>(call);
  return by_group(call, group_axes(call.inputs[0].shape, attributes.axes),
                  static_cast<long double>(attributes.epsilon));
}

std::vector<Expected> group_norm(const Call& call) {
  const auto attributes = attributes_of<bp_group_norm_attributes>(call);
  return by_group(call, group_channels(call.inputs[0].shape, attributes.groups),
                  static_cast<long double>(attributes.epsilon));
}

std::vector<Expected> rms_norm(const Call& call) {
  const auto attributes = attributes_of<bp_norm_attributes>(call);
  const Tensor& x = call.inputs[0];
  const Tensor* gamma = optional(call.inputs, 1);
  const Grouping grouping = group_axes(x.shape, attributes.axes);
  std::vector<Expected> expected = outputs_of(call);
  for (size_t g = 0; g < grouping.members.size(); ++g) {
    const std::vector<int64_t>& members = grouping.members[g];
    const auto n = static_cast<int64_t>(members.size());
    long double squares = 0;
    for (const int64_t i : members) squares += value_at(x, i) * value_at(x, i);
    const long double r = 1 / std::sqrt(squares / count_of(n) + static_cast<long double>(attributes.epsilon));
    const uint32_t dtype = call.outputs[0].dtype;
    for (const int64_t i : members) {
      const long double y = value_at(x, i) * r * value_or(gamma, grouping.parameter[static_cast<size_t>(i)], 1);
      expected[0].elements[static_cast<size_t>(i)] = near(dtype, y, rms_loss(dtype, n) * std::fabs(y));
    }
    if (optional(call.outputs, 1) != nullptr)
      expected[1].elements[g] = near(call.outputs[1].dtype, r, rms_loss(call.outputs[1].dtype, n) * r);
  }
  return expected;
}

std::vector<Expected> batch_norm(const Call& call) {
  const auto attributes = attributes_of<bp_batch_norm_attributes>(call);
  const Tensor &x = call.inputs[0], *gamma = optional(call.inputs, 1), *beta = optional(call.inputs, 2);
  const Tensor *old_means = optional(call.inputs, 3), *old_variances = optional(call.inputs, 4);
  const auto epsilon = static_cast<long double>(attributes.epsilon);
  const auto share = static_cast<long double>(attributes.momentum);
  const uint32_t dtype = call.outputs[0].dtype;
  const bool training = attributes.training != 0;
  const Grouping grouping = group_batch(x.shape);
  std::vector<Expected> expected = outputs_of(call);
  for (size_t c = 0; c < grouping.members.size(); ++c) {
    const auto channel = static_cast<int64_t>(c);
    const Moments batch = moments_of(x, grouping.members[c]);
    const long double old_mean = value_or(old_means, channel, 0), old_variance = value_or(old_variances, channel, 0);
    const long double mean = training ? batch.mean : old_mean;
    const long double r = 1 / std::sqrt((training ? batch.variance : old_variance) + epsilon);
    const long double loss = norm_loss(dtype, training ? batch.count : 1);
    for (const int64_t i : grouping.members[c]) {
      expected[0].elements[static_cast<size_t>(i)] =
          normalised(dtype, value_at(x, i), mean, training ? batch.magnitude : std::fabs(mean), r,
                     value_or(gamma, channel, 1), value_or(beta, channel, 0), loss);
    }
    const auto dtype_of = [&](size_t i) {
      const Tensor* out = optional(call.outputs, i);
      return out != nullptr ? out->dtype : dtype;
    };
    const Element batch_mean = mean_of(dtype_of(3), batch), batch_rstd = rstd_of(dtype_of(4), batch, r);
    const long double mean_bound = mean_of(dtype, batch).bound;
    const auto running = [&](size_t i, long double before, long double now, long double now_bound) {
      const long double value = training ? (1 - share) * before + share * now : before;
      const long double terms = (1 - share) * std::fabs(before) + share * std::fabs(now);
      return near(dtype_of(i), value, training ? share * now_bound + 4 * unit(dtype) * terms : 0);
    };
    const long double variance_bound =
        2 * norm_loss(dtype, batch.count) * (1 + r * batch.magnitude) * (batch.variance + epsilon);
    const long double correction = attributes.unbiased != 0 ? count_of(batch.count) / (count_of(batch.count) - 1) : 1;
    const Element results[] = {running(1, old_mean, batch.mean, mean_bound),
                               running(2, old_variance, correction * batch.variance, correction * variance_bound),
                               batch_mean, batch_rstd};
    for (size_t i = 0; i < std::size(results); ++i) {
      if (optional(call.outputs, i + 1) != nullptr) expected[i + 1].elements[c] = results[i];
    }
  }
  return expected;
}

}  // namespace backplane::conformance::oracle
