// SPDX-License-Identifier: Apache-2.0
// Oracles of gelu, silu, sigmoid, pow and activation_bwd, and the activations that other composites fuse.
#include <numbers>

#include "composite.hpp"
#include "elementwise.hpp"
#include "operators.hpp"

namespace backplane::conformance::oracle {

namespace {

constexpr long double kSqrt2OverPi = 0.797884560802865355879892119868763737L;

// Returns the factor by which silu and gelu multiply x. The formulas avoid cancellation in the left
// tail.
long double gate(uint32_t activation, long double x) {
  switch (activation) {
    case BP_ACTIVATION_GELU_ERF:
      return std::erfc(-x / std::numbers::sqrt2_v<long double>) / 2;
    case BP_ACTIVATION_GELU_TANH:
      return 1 / (1 + std::exp(-2 * kSqrt2OverPi * (x + 0.044715L * x * x * x)));
    default:
      return 1 / (1 + std::exp(-x));
  }
}

// Returns twice the minimum normal number, for example 2^-125 for f32.
long double underflow(uint32_t dtype) { return 2 * least_normal(computed_in(dtype)); }

// Returns gelu with its error bound. In the left tail, the gate is an exponential whose argument has an error of a few
// roundings, so the bound is relative. The erf form in f64 has an absolute bound, because no primitive computes the
// tail of erf.
Activated gelu(uint32_t activation, uint32_t dtype, long double x) {
  const long double share = gate(activation, x), value = x * share, magnitude = std::fabs(x), u = unit(dtype);
  if (computed_in(dtype) == BP_F64 && activation == BP_ACTIVATION_GELU_ERF) return {value, 16 * u * magnitude};
  const long double steps = share > 0 ? std::fabs(std::log(share)) : 0;
  return {value, (16 + 8 * steps) * u * std::fabs(value) + magnitude * underflow(dtype)};
}

}  // namespace

Activated activate(uint32_t activation, uint32_t dtype, long double x) {
  const long double magnitude = std::fabs(x);
  switch (activation) {
    case BP_ACTIVATION_NONE:
      return {x, 0};
    case BP_ACTIVATION_RELU:
      return {x < 0 ? 0 : x, 0};
    case BP_ACTIVATION_SIGMOID: {
      const long double value = gate(activation, x);
      return {value, std::isinf(x) ? 0 : (9 + magnitude / 16) * unit_ulp(dtype, value) + underflow(dtype)};
    }
    case BP_ACTIVATION_SILU: {
      const long double value = x * gate(activation, x);
      return {value, (9 + magnitude / 16) * unit_ulp(dtype, value) + magnitude * underflow(dtype)};
    }
    default:
      return gelu(activation, dtype, x);
  }
}

namespace {

// Returns whether NaN and zeros are accepted. At -inf, a formula of silu or gelu may compute 0 times infinity, which is
// NaN. The limit is 0.
bool has_two_results(uint32_t activation, long double x) {
  return std::isinf(x) && x < 0 &&
         (activation == BP_ACTIVATION_SILU || activation == BP_ACTIVATION_GELU_ERF ||
          activation == BP_ACTIVATION_GELU_TANH);
}

std::vector<Expected> pointwise(const Call& call, uint32_t activation) {
  const Tensor &in = call.inputs[0], &out = call.outputs[0];
  Expected expected;
  expected.elements.reserve(static_cast<size_t>(in.count()));
  for (int64_t i = 0; i < in.count(); ++i) {
    const long double x = value_at(in, i);
    const auto [value, bound] = activate(activation, out.dtype, x);
    expected.elements.push_back(has_two_results(activation, x) ? nan_or_zero(out.dtype)
                                                               : near(out.dtype, value, bound));
  }
  return {expected};
}

}  // namespace

Element activated(uint32_t activation, uint32_t dtype, const Verdict& verdict) {
  // Maximum slope of all activations, which is the slope of gelu.
  constexpr long double lipschitz = 1.13L;
  if (activation == BP_ACTIVATION_NONE || verdict.criterion == Criterion::any) return finish(dtype, verdict);
  if (has_two_results(activation, verdict.value)) return nan_or_zero(dtype);
  const auto [value, bound] = activate(activation, dtype, verdict.value);
  if (activation == BP_ACTIVATION_RELU) return finish(dtype, {verdict.criterion, value, verdict.lost});
  return near(dtype, value, lipschitz * verdict.lost + bound);
}

std::vector<Expected> gelu(const Call& call) {
  const bool tanh_form = attributes_of<bp_gelu_attributes>(call).approximation == BP_GELU_TANH;
  return pointwise(call, tanh_form ? BP_ACTIVATION_GELU_TANH : BP_ACTIVATION_GELU_ERF);
}

std::vector<Expected> silu(const Call& call) { return pointwise(call, BP_ACTIVATION_SILU); }

std::vector<Expected> sigmoid(const Call& call) { return pointwise(call, BP_ACTIVATION_SIGMOID); }

namespace {

// Returns the derivative of the gate at x.
long double gate_growth(uint32_t activation, long double x) {
  if (activation == BP_ACTIVATION_GELU_ERF)
    return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi_v<long double>);
  const long double logistic = gate(activation, x) * gate(activation, -x);
  return activation == BP_ACTIVATION_SILU ? logistic : logistic * 2 * kSqrt2OverPi * (1 + 3 * 0.044715L * x * x);
}

// Returns the slope of the activation and the bound of its error. `z` is the argument of gelu and silu, or the result
// of sigmoid and tanh. The bound is NaN, which accepts any result, if gelu or silu has an infinite argument, or if
// sigmoid and tanh never return z.
Activated slope(uint32_t activation, uint32_t dtype, long double z) {
  if (std::isnan(z)) return {z, 0};
  const long double u = unit(dtype), least = 1024 * least_normal(computed_in(dtype));
  switch (activation) {
    case BP_ACTIVATION_SIGMOID:
      return {z * (1 - z), z < 0 || z > 1 ? NAN : 4 * u * z * (1 + z) + least};
    case BP_ACTIVATION_TANH:
      return {(1 - z) * (1 + z), std::fabs(z) > 1 ? NAN : 4 * u * (1 + z * z) + least};
    default: {
      // Beyond 16384, the gate is 0 or 1, and a power of z would overflow.
      if (std::fabs(z) > 16384) return {z > 0 ? 1.0L : 0.0L, std::isinf(z) ? NAN : 16 * u + least};
      const long double share = gate(activation, z), growth = z * gate_growth(activation, z);
      const long double magnitude = share + std::fabs(growth);
      if (computed_in(dtype) == BP_F64 && activation == BP_ACTIVATION_GELU_ERF) return {share + growth, 16 * u};
      const long double steps = share > 0 ? std::fabs(std::log(share)) : 0;
      return {share + growth, (16 + 8 * steps) * u * magnitude + least};
    }
  }
}

}  // namespace

std::vector<Expected> activation_bwd(const Call& call) {
  const Tensor &gradients = call.inputs[0], &points = call.inputs[1], &out = call.outputs[0];
  const uint32_t activation = attributes_of<bp_activation_bwd_attributes>(call).activation;
  Expected expected;
  expected.elements.reserve(static_cast<size_t>(out.count()));
  for (int64_t i = 0; i < out.count(); ++i) {
    const long double dy = value_at(gradients, i), z = value_at(points, i);
    if (activation == BP_ACTIVATION_RELU) {
      expected.elements.push_back(exact_value(out.dtype, z <= 0 ? 0 : load(gradients, i)));
      expected.elements.back().criterion = Criterion::unsigned_zero;
      continue;
    }
    const auto [value, bound] = slope(activation, out.dtype, z);
    // The product of an infinite dy and a slope that may be 0 has no determined sign.
    const bool open = !std::isnan(dy) && (std::isnan(bound) || (std::isinf(dy) && std::fabs(value) <= bound));
    expected.elements.push_back(open ? anything(out.dtype, 0) : near(out.dtype, dy * value, std::fabs(dy) * bound));
  }
  return only(std::move(expected));
}

std::vector<Expected> pow(const Call& call) {
  const Tensor &bases = call.inputs[0], &exponents = call.inputs[1], &out = call.outputs[0];
  Expected expected;
  expected.elements.reserve(static_cast<size_t>(out.count()));
  for (int64_t i = 0; i < out.count(); ++i) {
    const long double x = value_at(bases, i), y = value_at(exponents, i);
    const long double value = std::pow(x, y), steps = std::fabs(y * std::log(std::fabs(x)));
    if (x == -1 && std::isinf(y)) {
      // For these operands, the decomposition computes e^(inf * 0), which is NaN, but std::pow
      // returns 1. Both results are correct.
      expected.elements.push_back(anything(out.dtype, value));
    } else if (value == 0 || x == 1 || y == 0) {
      expected.elements.push_back(near(out.dtype, value, 0));
      expected.elements.back().criterion = Criterion::unsigned_zero;
    } else {
      expected.elements.push_back(near(out.dtype, value, (8 + 8 * steps) * unit_ulp(out.dtype, value)));
    }
  }
  return {expected};
}

}  // namespace backplane::conformance::oracle
