// SPDX-License-Identifier: Apache-2.0
// Oracles of softmax, log_softmax and softmax_bwd.
#include "softmax.hpp"

#include "operators.hpp"

namespace backplane::conformance::oracle {

SoftmaxRow softmax_row(const std::vector<long double>& x, uint32_t dtype) {
  SoftmaxRow row;
  for (const long double value : x) {
    row.nan = row.nan || std::isnan(value) || value == kInfinity;
    row.greatest = std::max(row.greatest, value);
  }
  const bool nothing = row.greatest == -kInfinity;
  long double sum = 0, spread = 0;
  for (const long double value : x) {
    const long double e = nothing ? 0 : std::exp(value - row.greatest);
    row.y.push_back(e);
    sum += e;
    if (e != 0) spread += e * std::fabs(value - row.greatest);
  }
  row.log_sum = nothing ? -kInfinity : row.greatest + std::log(sum);
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
  const AxisView view(in, attributes_of<bp_axis_attributes>(call).axis);
  std::vector<Expected> expected = outputs_of(call);
  view.each([&](int64_t o, int64_t j) {
    const std::vector<long double> x = elements_along(in, view, o, j);
    const SoftmaxRow row = softmax_row(x, out.dtype);
    const bool nan = row.nan || row.greatest == -kInfinity;
    for (int64_t n = 0; n < view.extent; ++n) {
      const auto i = static_cast<size_t>(n);
      Element& element = expected[0].elements[static_cast<size_t>(view.at(o, n, j))];
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
  const AxisView view(dy, attributes.axis);
  // The bound of softmax_bwd is four times the bound of softmax.
  const long double u = unit(out.dtype), terms = 4 * (rho(view.extent) + 24);
  std::vector<Expected> expected = outputs_of(call);
  view.each([&](int64_t o, int64_t j) {
    const std::vector<long double> gradient = elements_along(dy, view, o, j), result = elements_along(y, view, o, j);
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
      expected[0].elements[static_cast<size_t>(view.at(o, static_cast<int64_t>(i), j))] =
          near(out.dtype, value, u * terms * scale);
    }
  });
  return expected;
}

}  // namespace backplane::conformance::oracle
