// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax, their backward, cross_entropy.
#include "softmax.hpp"

#include "operators.hpp"

namespace bp::conformance::oracle {

namespace {

constexpr long double infinity = std::numeric_limits<long double>::infinity();

std::vector<long double> lane_of(const Tensor& tensor, const Lanes& lanes, int64_t o, int64_t j) {
  std::vector<long double> lane(static_cast<size_t>(lanes.extent));
  for (int64_t i = 0; i < lanes.extent; ++i) lane[static_cast<size_t>(i)] = value_at(tensor, lanes.at(o, i, j));
  return lane;
}

}  // namespace

SoftmaxRow softmax_row(const std::vector<long double>& x, uint32_t dtype) {
  SoftmaxRow row;
  for (const long double value : x) {
    row.nan = row.nan || std::isnan(value) || value == infinity;
    row.greatest = std::max(row.greatest, value);
  }
  const bool nothing = row.greatest == -infinity;
  long double sum = 0, spread = 0;
  for (const long double value : x) {
    const long double e = nothing ? 0 : std::exp(value - row.greatest);
    row.y.push_back(e);
    sum += e;
    if (e != 0) spread += e * std::fabs(value - row.greatest);
  }
  row.log_sum = nothing ? -infinity : row.greatest + std::log(sum);
  const long double u = unit(dtype), terms = rho(static_cast<int64_t>(x.size())) / 2 + 24;
  for (size_t i = 0; i < x.size(); ++i) {
    const long double distance = std::fabs(x[i] - row.greatest);
    long double& y = row.y[i];
    y /= sum;
    const long double relative = y == 0 ? 0 : 2 * distance + 2 * spread / sum + terms;
    row.tolerance.push_back(u * y * relative + 6 * least_subnormal(computed_in(dtype)));
    row.log_tolerance.push_back(u * (2 * distance + 4 * std::fabs(row.log_sum) + terms));
  }
  return row;
}

std::vector<Expected> softmax(const Call& call) {
  const Tensor &in = call.inputs[0], &out = call.outputs[0];
  const bool logarithm = call.op == BP_OP_LOG_SOFTMAX;
  const Lanes lanes(in, attributes_of<bp_axis_attributes>(call).axis);
  std::vector<Expected> expected = outputs_of(call);
  lanes.each([&](int64_t o, int64_t j) {
    const std::vector<long double> x = lane_of(in, lanes, o, j);
    const SoftmaxRow row = softmax_row(x, out.dtype);
    const bool nan = row.nan || row.greatest == -infinity;
    for (int64_t n = 0; n < lanes.extent; ++n) {
      const auto i = static_cast<size_t>(n);
      Element& element = expected[0].elements[static_cast<size_t>(lanes.at(o, n, j))];
      if (nan) {
        element = exact_value(out.dtype, quiet_nan_bits(out.dtype));
      } else if (logarithm) {
        element = near(out.dtype, x[i] - row.log_sum, row.log_tolerance[i]);
      } else {
        element = near(out.dtype, row.y[i], row.tolerance[i]);
      }
    }
  });
  return expected;
}

std::vector<Expected> softmax_bwd(const Call& call) {
  const Tensor &dy = call.inputs[0], &y = call.inputs[1], &out = call.outputs[0];
  const auto attributes = attributes_of<bp_softmax_bwd_attributes>(call);
  const Lanes lanes(dy, attributes.axis);
  const long double u = unit(out.dtype), terms = 4 * (rho(lanes.extent) + 24);  // four times the forward's
  std::vector<Expected> expected = outputs_of(call);
  lanes.each([&](int64_t o, int64_t j) {
    const std::vector<long double> gradient = lane_of(dy, lanes, o, j), result = lane_of(y, lanes, o, j);
    long double sum = 0, magnitude = 0;
    for (size_t i = 0; i < gradient.size(); ++i) {
      const long double term = attributes.log != 0 ? gradient[i] : gradient[i] * result[i];
      sum += term;
      magnitude += std::fabs(term);
    }
    for (size_t i = 0; i < gradient.size(); ++i) {
      const long double g = gradient[i], r = attributes.log != 0 ? std::exp(result[i]) : result[i];
      const long double value = attributes.log != 0 ? g - r * sum : r * (g - sum);
      const long double scale =
          attributes.log != 0 ? std::fabs(g) + r * magnitude : std::fabs(r) * (std::fabs(g) + magnitude);
      expected[0].elements[static_cast<size_t>(lanes.at(o, static_cast<int64_t>(i), j))] =
          near(out.dtype, value, u * terms * scale);
    }
  });
  return expected;
}

namespace {

// The target distribution of one row, weighted: what each logarithm of a probability is multiplied with.
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

// What the mean divides by: the weights of the targets that count.
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

// The gradient is that of the reduced loss, for an upstream gradient of 1.
std::vector<Expected> cross_entropy(const Call& call) {
  const Tensor& logits = call.inputs[0];
  const uint32_t dtype = call.outputs[0].dtype;
  const int64_t rows = logits.shape[0], classes = logits.shape[1];
  const bool each = attributes_of<bp_cross_entropy_attributes>(call).reduction == BP_REDUCTION_NONE;
  const Lanes lanes(logits, 1);
  const long double u = unit(dtype), divisor = mean_divisor(call, rows), few = rho(classes) + 16;
  std::vector<Expected> expected = outputs_of(call);
  long double total = 0, total_bound = 0, total_magnitude = 0;
  for (int64_t n = 0; n < rows; ++n) {
    const std::vector<long double> x = lane_of(logits, lanes, n, 0), share = target_of(call, n, classes);
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

}  // namespace bp::conformance::oracle
