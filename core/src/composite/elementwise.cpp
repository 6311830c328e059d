// SPDX-License-Identifier: Apache-2.0
// Lowers gelu, silu, sigmoid, pow, activation_bwd, and the activations that other composites apply.
#include <cmath>
#include <numbers>

#include "composite/families.hpp"

namespace backplane::core::composite {

namespace {

// Returns 1 + e^-x. If x < -89, an f32 result overflows to infinity, and its reciprocal is 0.
Value one_plus_exp(Builder& b, const Value& x) { return b.add(b.exp(b.neg(x)), b.constant(1)); }

// Returns x * ((1 + shape) / 2). Halving the factor is exact, but halving a subnormal x is not.
Value half_gate(Builder& b, const Value& x, const Value& shape) {
  return b.mul(x, b.mul(b.add(shape, b.constant(1)), b.constant(0.5)));
}

// Returns erfc(z) / 2 for z = |x| / sqrt(2), with relative error 2^-23. With t = 1 / (1 + z / 2),
// erfc(z) is t e^(P(t) - z^2), where P is a Chebyshev fit (Numerical Recipes, erfcc). The
// expression 1 - erf(z) would lose digits by cancellation.
Value half_tail(Builder& b, const Value& x) {
  constexpr double fit[] = {0.17087277,  -0.82215223, 1.48851587, -1.13520398, 0.27886807,
                            -0.18628806, 0.09678418,  0.37409196, 1.00002368,  -1.26551223};
  const Value half_z = b.mul(b.unary(BP_OP_ABS, x), b.constant(0.5 / std::numbers::sqrt2));
  const Value t = b.div(b.constant(1), b.add(half_z, b.constant(1)));
  Value power = b.constant(fit[0]);
  for (size_t i = 1; i < std::size(fit); ++i) power = b.add(b.mul(power, t), b.constant(fit[i]));
  const Value square = b.mul(b.mul(x, x), b.constant(0.5));
  return b.mul(b.mul(t, b.constant(0.5)), b.exp(b.sub(power, square)));
}

Value gelu_erf(Builder& b, const Value& x) {
  // The error of half_tail is too large for f64.
  if (b.number() == BP_F64) return half_gate(b, x, b.unary(BP_OP_ERF, b.mul(x, b.constant(1 / std::numbers::sqrt2))));
  const Value tail = half_tail(b, x);
  const Value left = b.compare(BP_COMPARE_LT, x, b.constant(0));
  return b.mul(x, b.select(left, tail, b.sub(b.constant(1), tail)));
}

// Returns x * sigmoid(2 v) with v = sqrt(2 / pi) (x + 0.044715 x^3). The result equals
// x * (1 + tanh v) / 2, whose sum would lose digits by cancellation.
Value gelu_tanh(Builder& b, const Value& x) {
  const double factor = -2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const Value cubic = b.add(b.mul(b.mul(x, x), b.constant(factor * 0.044715)), b.constant(factor));
  return b.div(x, b.add(b.exp(b.mul(x, cubic)), b.constant(1)));
}

// Returns x / (1 + e^-x), which rounds once less than x * sigmoid(x).
Value silu_of(Builder& b, const Value& x) { return b.div(x, one_plus_exp(b, x)); }

Value sigmoid_of(Builder& b, const Value& x) {
  const Value divisor = one_plus_exp(b, x);
  return b.div(b.constant(1), divisor);
}

// Clamps x, so that no power of x in a slope's formula overflows. At both limits the sigmoid or the
// distribution function in the formula is 0 or 1, so the clamp changes no slope.
Value limited(Builder& b, const Value& x) {
  constexpr double limit = 16384;
  return b.binary(BP_OP_MAX, b.binary(BP_OP_MIN, x, b.constant(limit)), b.constant(-limit));
}

// Returns the derivative of x * g with g = sigmoid(w), which is g + g (1 - g) x w'. `growth` is
// x w'. The factor 1 - g is computed as sigmoid(-w), because the difference would lose digits by
// cancellation.
Value gate_slope(Builder& b, const Value& w, const Value& growth) {
  const Value rest = b.div(b.constant(1), b.add(b.exp(w), b.constant(1)));
  return b.mul(sigmoid_of(b, w), b.add(b.mul(growth, rest), b.constant(1)));
}

Value gelu_tanh_slope(Builder& b, const Value& x) {
  const double factor = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi, cubic = factor * 0.044715;
  const Value square = b.mul(x, x);
  const Value w = b.mul(x, b.add(b.mul(square, b.constant(cubic)), b.constant(factor)));
  return gate_slope(b, w, b.mul(x, b.add(b.mul(square, b.constant(3 * cubic)), b.constant(factor))));
}

// Returns cdf(x) + x pdf(x), the derivative of x cdf(x), where cdf and pdf are the distribution
// function and the density of the normal distribution.
Value gelu_erf_slope(Builder& b, const Value& x) {
  const double root = std::numbers::sqrt2 * std::numbers::inv_sqrtpi / 2;
  const Value density = b.mul(b.exp(b.mul(b.mul(x, x), b.constant(-0.5))), b.constant(root));
  const Value slope = b.mul(x, density);
  if (b.number() == BP_F64) {
    const Value shape = b.unary(BP_OP_ERF, b.mul(x, b.constant(1 / std::numbers::sqrt2)));
    return b.add(b.mul(b.add(shape, b.constant(1)), b.constant(0.5)), slope);
  }
  const Value tail = half_tail(b, x);
  const Value left = b.compare(BP_COMPARE_LT, x, b.constant(0));
  return b.add(b.select(left, tail, b.sub(b.constant(1), tail)), slope);
}

// Returns the slope of the activation at z. For gelu and silu, z is the activation's input. For sigmoid and tanh, z is
// the activation's output.
Value slope_of(Builder& b, uint32_t activation, const Value& z) {
  switch (activation) {
    case BP_ACTIVATION_GELU_ERF:
      return gelu_erf_slope(b, limited(b, z));
    case BP_ACTIVATION_GELU_TANH:
      return gelu_tanh_slope(b, limited(b, z));
    case BP_ACTIVATION_SILU: {
      const Value x = limited(b, z);
      return gate_slope(b, x, x);
    }
    case BP_ACTIVATION_SIGMOID:
      return b.mul(z, b.sub(b.constant(1), z));
    default:
      return b.mul(b.sub(b.constant(1), z), b.add(z, b.constant(1)));
  }
}

}  // namespace

Value activate(Builder& b, uint32_t activation, const Value& x) {
  switch (activation) {
    case BP_ACTIVATION_RELU:
      return b.binary(BP_OP_MAX, x, b.constant(0));
    case BP_ACTIVATION_GELU_ERF:
      return gelu_erf(b, x);
    case BP_ACTIVATION_GELU_TANH:
      return gelu_tanh(b, x);
    case BP_ACTIVATION_SILU:
      return silu_of(b, x);
    case BP_ACTIVATION_SIGMOID:
      return sigmoid_of(b, x);
    default:
      return x;
  }
}

void gelu(Builder& b) {
  const bool tanh_form = b.attributes<bp_gelu_attributes>().approximation == BP_GELU_TANH;
  b.store(b.output(0), activate(b, tanh_form ? BP_ACTIVATION_GELU_TANH : BP_ACTIVATION_GELU_ERF, b.load(0)));
}

void silu(Builder& b) { b.store(b.output(0), silu_of(b, b.load(0))); }

void sigmoid(Builder& b) { b.store(b.output(0), sigmoid_of(b, b.load(0))); }

void activation_bwd(Builder& b) {
  const uint32_t activation = b.attributes<bp_activation_bwd_attributes>().activation;
  if (activation != BP_ACTIVATION_RELU) {
    b.store(b.output(0), b.mul(b.load(0), slope_of(b, activation, b.load(1))));
    return;
  }
  // relu selects dy or 0 instead of multiplying, because 0 times an infinite dy would be NaN.
  const Value dy = b.input(0), z = b.input(1);
  const Value zero = b.constant(z.dtype(), 0);
  b.store(b.output(0), b.select(b.compare(BP_COMPARE_LE, z, zero), zero, dy));
}

// Computes e^(y ln |x|), the sign of an odd power, and the special cases that the logarithm does
// not cover.
void pow(Builder& b) {
  const Value x = b.load(0), y = b.load(1);
  const Value zero = b.constant(0), one = b.constant(1);
  const Value magnitude = b.unary(BP_OP_ABS, x);
  const Value power = b.exp(b.mul(y, b.log(magnitude)));
  // The operand x is treated as negative if x < 0 or 1 / x < 0. Only the first test finds -inf,
  // since 1 / -inf is -0. Only the second test finds -0, since 1 / -0 is -inf.
  const Value below = b.compare(BP_COMPARE_LT, x, zero);
  const Value negative = b.binary(BP_OP_OR, below, b.compare(BP_COMPARE_LT, b.div(one, x), zero));
  const auto is_whole = [&](const Value& v) { return b.compare(BP_COMPARE_EQ, b.unary(BP_OP_FLOOR, v), v); };
  const Value whole = is_whole(y);
  const Value odd = b.binary(BP_OP_AND, whole, b.unary(BP_OP_BITNOT, is_whole(b.mul(y, b.constant(0.5)))));
  const Value signed_power = b.select(b.binary(BP_OP_AND, negative, odd), b.neg(power), power);
  const Value finite = b.compare(BP_COMPARE_LT, magnitude, b.constant(HUGE_VAL));
  const Value no_real = b.binary(BP_OP_AND, b.binary(BP_OP_AND, below, finite), b.unary(BP_OP_BITNOT, whole));
  const Value real = b.select(no_real, b.constant(NAN), signed_power);
  // A device that flushes subnormals reads a subnormal y as 0. If the logarithm is infinite, the
  // product y ln |x| is then NaN. The test therefore compares y * 1 with 0, because the product is
  // 0 on such a device.
  const Value multiplied = b.mul(y, one);
  const Value is_one = b.binary(BP_OP_OR, b.compare(BP_COMPARE_EQ, x, one), b.compare(BP_COMPARE_EQ, multiplied, zero));
  b.store(b.output(0), b.select(is_one, one, real));
}

}  // namespace backplane::core::composite
