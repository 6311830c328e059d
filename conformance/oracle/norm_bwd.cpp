// SPDX-License-Identifier: Apache-2.0
// Oracle of norm_bwd, which computes the gradients of all four normalisations. For batch_norm,
// norm_bwd computes the gradients in training, which uses the statistics of the batch.
#include "norm.hpp"
#include "operators.hpp"

namespace backplane::conformance::oracle {

namespace {

Grouping grouping_of(const bp_norm_bwd_attributes& attributes, const std::vector<int64_t>& shape) {
  switch (attributes.norm) {
    case BP_NORM_GROUP:
      return group_channels(shape, attributes.groups);
    case BP_NORM_BATCH:
      return group_batch(shape);
    default:
      return group_axes(shape, attributes.axes);
  }
}

// A sum, and the sum of the error bounds of its terms.
struct Part {
  Sum sum{};
  long double off = 0;
  Element finish(uint32_t dtype) const {
    const Total total = sum.total();
    if (total.nan || total.plus || total.minus) {
      const bool none = total.nan || (total.plus && total.minus);
      return exact_value(dtype, none ? quiet_nan_bits(dtype) : infinity_bits(dtype, total.minus));
    }
    const long double summing = rho(sum.count()) * unit(dtype) * sum.magnitude();
    return near(dtype, sum.value(), 4 * (summing + off));
  }
};

}  // namespace

std::vector<Expected> norm_bwd(const Call& call) {
  const auto attributes = attributes_of<bp_norm_bwd_attributes>(call);
  const Tensor &dy = call.inputs[0], &x = call.inputs[1];
  const Tensor *gamma = optional(call.inputs, 2), *means = optional(call.inputs, 3), *rstds = optional(call.inputs, 4);
  const uint32_t dtype = call.outputs[0].dtype;
  const bool centred = attributes.norm != BP_NORM_RMS;
  const Grouping grouping = grouping_of(attributes, x.shape);
  std::vector<Expected> expected = outputs_of(call);
  std::vector<Part> dgamma, dbeta;

  for (size_t g = 0; g < grouping.members.size(); ++g) {
    const std::vector<int64_t>& members = grouping.members[g];
    const Moments moments = moments_of(x, members);
    const auto group = static_cast<int64_t>(g);
    const long double n = count_of(moments.count);
    const long double mean = centred ? value_or(means, group, moments.mean) : 0;
    const long double square = moments.variance + (centred ? 0 : moments.mean * moments.mean);
    const long double r = value_or(rstds, group, 1 / std::sqrt(square + static_cast<long double>(attributes.epsilon)));
    // The bounds are four times the bounds of the forward operators, since every term contains the
    // error of the normalised x.
    const long double loss = norm_loss(dtype, moments.count), spread = 1 + r * moments.magnitude;

    long double mean_g = 0, mean_gx = 0, mean_abs_g = 0, mean_abs_gx = 0;
    for (const int64_t i : members) {
      const auto p = grouping.parameter[static_cast<size_t>(i)];
      const long double gradient = value_at(dy, i) * value_or(gamma, p, 1), straight = (value_at(x, i) - mean) * r;
      mean_g += gradient / n;
      mean_gx += gradient * straight / n;
      mean_abs_g += std::fabs(gradient) / n;
      mean_abs_gx += std::fabs(gradient) * (1 + std::fabs(straight)) / n;
    }
    for (const int64_t i : members) {
      const auto p = static_cast<size_t>(grouping.parameter[static_cast<size_t>(i)]);
      const long double upstream = value_at(dy, i), gradient = upstream * value_or(gamma, static_cast<int64_t>(p), 1);
      const long double straight = (value_at(x, i) - mean) * r;
      const long double value = r * (gradient - (centred ? mean_g : 0) - straight * mean_gx);
      const long double terms = std::fabs(gradient) + mean_abs_g + (1 + std::fabs(straight)) * mean_abs_gx;
      expected[0].elements[static_cast<size_t>(i)] = near(dtype, value, 4 * r * loss * spread * terms);
      if (dgamma.size() <= p) dgamma.resize(p + 1), dbeta.resize(p + 1);
      dgamma[p].sum.add(upstream * straight);
      dgamma[p].off += std::fabs(upstream) * loss * (std::fabs(straight) + r * moments.magnitude);
      dbeta[p].sum.add(upstream);
    }
  }
  for (size_t p = 0; p < dgamma.size(); ++p) {
    if (const Tensor* out = optional(call.outputs, 1)) expected[1].elements[p] = dgamma[p].finish(out->dtype);
    if (const Tensor* out = optional(call.outputs, 2)) expected[2].elements[p] = dbeta[p].finish(out->dtype);
  }
  return expected;
}

}  // namespace backplane::conformance::oracle
