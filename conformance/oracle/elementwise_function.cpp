// SPDX-License-Identifier: Apache-2.0
// Oracle of unary.
#include <numbers>

#include "composite.hpp"
#include "elementwise.hpp"
#include "operators.hpp"

namespace backplane::conformance::oracle {

namespace {

long double softplus(long double x) { return std::max(x, 0.0L) + std::log1p(std::exp(-std::fabs(x))); }

long double mish(long double x) {
  const long double e = std::exp(std::min(x, 100.0L)), n = e * (e + 2);
  return x * (n / (n + 2));
}

long double hard_sigmoid(long double x) { return std::fmin(std::fmax(x + 3, 0.0L), 6.0L) / 6; }

// Returns the exact result for a number that is not NaN.
long double value_of(uint32_t function, long double x) {
  switch (function) {
    case BP_UNARY_EXPM1:
      return std::expm1(x);
    case BP_UNARY_EXP2:
      return std::exp2(x);
    case BP_UNARY_LOG1P:
      return std::log1p(x);
    case BP_UNARY_LOG2:
      return std::log2(x);
    case BP_UNARY_LOG10:
      return std::log10(x);
    case BP_UNARY_SIGN:
      return x > 0 ? 1 : x < 0 ? -1 : 0;
    case BP_UNARY_CEIL:
      return std::ceil(x);
    case BP_UNARY_TRUNC:
      return std::trunc(x);
    case BP_UNARY_FRAC:
      return x - std::trunc(x);
    case BP_UNARY_TAN:
      return std::tan(x);
    case BP_UNARY_ASIN:
      return std::asin(x);
    case BP_UNARY_ACOS:
      return std::acos(x);
    case BP_UNARY_ATAN:
      return std::atan(x);
    case BP_UNARY_SINH:
      return std::sinh(x);
    case BP_UNARY_COSH:
      return std::cosh(x);
    case BP_UNARY_ASINH:
      return std::asinh(x);
    case BP_UNARY_ACOSH:
      return std::acosh(x);
    case BP_UNARY_ATANH:
      return std::atanh(x);
    case BP_UNARY_SOFTPLUS:
      return softplus(x);
    case BP_UNARY_LOG_SIGMOID:
      return -softplus(-x);
    case BP_UNARY_MISH:
      return mish(x);
    case BP_UNARY_HARD_SIGMOID:
      return hard_sigmoid(x);
    default:
      return x * hard_sigmoid(x);
  }
}

bool is_exact(uint32_t function) { return function >= BP_UNARY_SIGN && function <= BP_UNARY_FRAC; }

// Returns the error bound of y = tan(x), computed as the quotient of sin and cos. For |x| above pi, sin and cos have an
// absolute error. An infinite bound accepts any result.
long double tangent_bound(uint32_t dtype, long double x, long double y) {
  if (std::fabs(x) <= std::numbers::pi_v<long double>) return 20 * unit_ulp(dtype, y);
  const long double error = (std::fabs(x) <= 0x1p13L ? 8 : 16) * unit(dtype);
  if (std::fabs(x) > 0x1p20L || std::fabs(std::cos(x)) <= 2 * error) return kInfinity;
  return 4 * error * (1 + y * y);
}

long double bound_of(uint32_t function, uint32_t dtype, long double x, long double y) {
  switch (function) {
    case BP_UNARY_TAN:
      return tangent_bound(dtype, x, y);
    case BP_UNARY_MISH:
      return 20 * unit_ulp(dtype, y) + 2 * std::fabs(x) * least_normal(computed_in(dtype));
    case BP_UNARY_HARD_SIGMOID:
      return 4 * unit(dtype);
    case BP_UNARY_HARD_SWISH:
      return 4 * unit(dtype) * std::fabs(x);
    default:
      return 20 * unit_ulp(dtype, y);
  }
}

}  // namespace

std::vector<Expected> unary_function(const Call& call) {
  const Tensor &in = call.inputs[0], &out = call.outputs[0];
  const uint32_t which = attributes_of<bp_unary_attributes>(call).function;
  Expected expected;
  expected.elements.reserve(static_cast<size_t>(in.count()));
  for (int64_t i = 0; i < in.count(); ++i) {
    const long double x = value_at(in, i), y = std::isnan(x) ? x : value_of(which, x);
    const bool open = x == -kInfinity && (which == BP_UNARY_MISH || which == BP_UNARY_HARD_SWISH);
    if (open) {
      expected.elements.push_back(anything(out.dtype, 0));
    } else if (is_exact(which)) {
      expected.elements.push_back(rounded(out.dtype, y));
      expected.elements.back().criterion = Criterion::unsigned_zero;
    } else {
      expected.elements.push_back(near(out.dtype, y, bound_of(which, out.dtype, x, y)));
    }
  }
  return only(std::move(expected));
}

}  // namespace backplane::conformance::oracle
