// SPDX-License-Identifier: Apache-2.0
// Oracles of cross_entropy, nll and nll_bwd.
#include "operators.hpp"
#include "softmax.hpp"

namespace backplane::conformance::oracle {

namespace {

// Returns the weighted target distribution of row `n`. The loss multiplies each element of the
// distribution by a log probability.
std::vector<long double> target_of(const Call& call, int64_t n, int64_t classes) {
  const auto attributes = attributes_of<bp_cross_entropy_attributes>(call);
  const int64_t target = integer_at(call.inputs[1], n);
  const Tensor* weight = optional(call.inputs, 2);
  std::vector<long double> share(static_cast<size_t>(classes), 0);
  if (target == attributes.ignore_index) return share;
  const auto smoothing = static_cast<long double>(attributes.label_smoothing);
  for (int64_t c = 0; c < classes; ++c) {
    const long double whole = (c == target ? 1 - smoothing : 0) + smoothing / count_of(classes);
    share[static_cast<size_t>(c)] = whole * value_or(weight, c, 1);
  }
  return share;
}

// Returns the divisor of a mean reduction, which is the sum of the weights of all targets that are
// not ignored. Returns 1 for other reductions.
long double mean_divisor(const Call& call, int64_t rows) {
  const auto attributes = attributes_of<bp_cross_entropy_attributes>(call);
  if (attributes.reduction != BP_REDUCTION_MEAN) return 1;
  const Tensor* weight = optional(call.inputs, 2);
  long double divisor = 0;
  for (int64_t n = 0; n < rows; ++n) {
    const int64_t target = integer_at(call.inputs[1], n);
    if (target != attributes.ignore_index) divisor += value_or(weight, target, 1);
  }
  return divisor;
}

}  // namespace

// Output 1 is the gradient of the reduced loss, with an upstream gradient of 1.
std::vector<Expected> cross_entropy(const Call& call) {
  const Tensor& logits = call.inputs[0];
  const uint32_t dtype = call.outputs[0].dtype;
  const int64_t rows = logits.shape[0], classes = logits.shape[1];
  const bool each = attributes_of<bp_cross_entropy_attributes>(call).reduction == BP_REDUCTION_NONE;
  const AxisView view(logits, 1);
  const long double u = unit(dtype), divisor = mean_divisor(call, rows), few = rho(classes) + 16;
  std::vector<Expected> expected = outputs_of(call);
  long double total = 0, total_bound = 0, total_magnitude = 0;
  for (int64_t n = 0; n < rows; ++n) {
    const std::vector<long double> x = elements_along(logits, view, n, 0), share = target_of(call, n, classes);
    const SoftmaxRow row = softmax_row(x, dtype);
    long double loss = 0, bound = 0, magnitude = 0, weight = 0;
    for (size_t c = 0; c < x.size(); ++c) {
      if (share[c] == 0) continue;
      const long double part = share[c] * (row.log_sum - x[c]);
      loss += part;
      magnitude += std::fabs(part);
      bound += std::fabs(share[c]) * row.log_tolerance[c];
      weight += share[c];
    }
    total += loss;
    total_bound += bound + few * u * magnitude;
    total_magnitude += magnitude;
    if (each) expected[0].elements[static_cast<size_t>(n)] = near(dtype, loss, bound + few * u * magnitude);
    for (size_t c = 0; c < x.size() && optional(call.outputs, 1) != nullptr; ++c) {
      const long double gradient = (row.y[c] * weight - share[c]) / divisor;
      const long double off = row.tolerance[c] * weight + few * u * (row.y[c] * weight + share[c]);
      expected[1].elements[static_cast<size_t>(n * classes) + c] =
          near(call.outputs[1].dtype, weight == 0 ? 0 : gradient, weight == 0 ? 0 : off / divisor);
    }
  }
  if (!each) {
    const long double bound = total_bound + (rho(rows) + 16) * u * total_magnitude;
    expected[0].elements[0] = near(dtype, total / divisor, bound / divisor);
  }
  return expected;
}

namespace {

// The weights of the targets, which are 0 for ignored rows, and their sum.
struct TargetWeights {
  std::vector<long double> weight{};
  std::vector<bool> ignored{};
  long double total = 0, magnitude = 0;
};
TargetWeights target_weights(const Call& call) {
  const Tensor &targets = call.inputs[1], *weights = optional(call.inputs, 2);
  const int64_t ignored = attributes_of<bp_nll_attributes>(call).ignore_index;
  TargetWeights found;
  for (int64_t n = 0; n < targets.count(); ++n) {
    const int64_t target = integer_at(targets, n);
    found.ignored.push_back(target == ignored);
    found.weight.push_back(target == ignored ? 0 : value_or(weights, target, 1));
    found.total += found.weight.back();
    found.magnitude += std::fabs(found.weight.back());
  }
  return found;
}

}  // namespace

std::vector<Expected> nll(const Call& call) {
  const Tensor& x = call.inputs[0];
  const uint32_t dtype = call.outputs[0].dtype, reduction = attributes_of<bp_nll_attributes>(call).reduction;
  const int64_t rows = x.shape[0], classes = x.shape[1];
  const TargetWeights target = target_weights(call);
  const long double u = unit(dtype), many = rho(rows) + 16;
  std::vector<Expected> expected = outputs_of(call);
  long double sum = 0, magnitude = 0;
  for (int64_t n = 0; n < rows; ++n) {
    const auto at = static_cast<size_t>(n);
    const long double likelihood = target.ignored[at] ? 0 : value_at(x, n * classes + integer_at(call.inputs[1], n));
    const long double loss = -target.weight[at] * likelihood;
    sum += loss;
    magnitude += std::fabs(loss);
    if (reduction == BP_REDUCTION_NONE) expected[0].elements[at] = near(dtype, loss, u * std::fabs(loss));
  }
  const long double divisor = reduction == BP_REDUCTION_MEAN ? target.total : 1;
  // The mean of no rows is 0 / 0, which is NaN.
  if (reduction != BP_REDUCTION_NONE)
    expected[0].elements[0] = near(dtype, sum / divisor, 2 * many * u * magnitude / std::fabs(divisor));
  if (const Tensor* total = optional(call.outputs, 1))
    expected[1].elements[0] = near(total->dtype, target.total, rho(rows) * u * target.magnitude);
  return expected;
}

std::vector<Expected> nll_bwd(const Call& call) {
  const Tensor &upstream = call.inputs[0], &out = call.outputs[0];
  const uint32_t reduction = attributes_of<bp_nll_attributes>(call).reduction;
  const int64_t rows = out.shape[0], classes = out.shape[1];
  const TargetWeights target = target_weights(call);
  const long double bound = unit(out.dtype) * (rho(rows) + 16);
  const long double divisor = reduction == BP_REDUCTION_MEAN ? value_or(optional(call.inputs, 3), 0, target.total) : 1;
  std::vector<Expected> expected = outputs_of(call);
  for (int64_t n = 0; n < rows; ++n) {
    const auto row = static_cast<size_t>(n);
    const long double dloss = value_at(upstream, reduction == BP_REDUCTION_NONE ? n : 0);
    const long double slope = target.ignored[row] ? 0 : -target.weight[row] * dloss / divisor;
    for (int64_t c = 0; c < classes; ++c) {
      const long double value = c == integer_at(call.inputs[1], n) ? slope : 0;
      expected[0].elements[static_cast<size_t>(n * classes + c)] = near(out.dtype, value, bound * std::fabs(value));
    }
  }
  return expected;
}

}  // namespace backplane::conformance::oracle
