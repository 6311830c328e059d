// SPDX-License-Identifier: Apache-2.0
// Oracle of cross_entropy.
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

}  // namespace backplane::conformance::oracle
