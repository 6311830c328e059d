// SPDX-License-Identifier: Apache-2.0
// Native kernels of the composites activation_bwd, silu and unary, without a defect or with one defect.
#include <cmath>

#include "composites.hpp"

namespace backplane::conformance::mutants {
namespace {

constexpr double kTwiceRoot = 1.5957691216057308, kCubic = 0.044715;

enum class SlopeFlaw { kNone, kMasksByProduct, kOtherGelu, kInputForOutput, kPowersOverflow };

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

double erf_slope(double x) {
  return std::erfc(-x * 0.70710678118654752) / 2 + x * 0.39894228040143268 * std::exp(-x * x / 2);
}

template <SlopeFlaw kFlaw>
double tanh_slope(double x) {
  // With the flaw kPowersOverflow, the square is rounded to f32 and may become infinite. The product of an infinity and
  // a slope of 0 is then NaN.
  const double square = kFlaw == SlopeFlaw::kPowersOverflow ? static_cast<double>(static_cast<float>(x * x)) : x * x;
  const double w = kTwiceRoot * x * (1 + kCubic * square), growth = kTwiceRoot * x * (1 + 3 * kCubic * square);
  if (kFlaw != SlopeFlaw::kPowersOverflow && std::fabs(w) > 1e4) return x > 0 ? 1 : 0;
  return logistic(w) * (1 + growth * logistic(-w));
}

template <SlopeFlaw kFlaw>
double slope(uint32_t activation, double z) {
  const bool other = kFlaw == SlopeFlaw::kOtherGelu;
  switch (activation) {
    case BP_ACTIVATION_GELU_ERF:
      return other || std::isinf(z) ? tanh_slope<kFlaw>(z) : erf_slope(z);
    case BP_ACTIVATION_GELU_TANH:
      return other ? erf_slope(z) : tanh_slope<kFlaw>(z);
    case BP_ACTIVATION_SILU:
      return std::fabs(z) > 1e4 ? (z > 0 ? 1 : 0) : logistic(z) * (1 + z * logistic(-z));
    case BP_ACTIVATION_SIGMOID: {
      const double y = kFlaw == SlopeFlaw::kInputForOutput ? logistic(z) : z;
      return y * (1 - y);
    }
    default: {
      const double y = kFlaw == SlopeFlaw::kInputForOutput ? std::tanh(z) : z;
      return (1 - y) * (1 + y);
    }
  }
}

// Operands: dy, z -> dx
template <SlopeFlaw kFlaw>
void activation_bwd(const Call& call) {
  const uint32_t activation = call.attributes<bp_activation_bwd_attributes>().activation;
  const Values dy(call.in(0)), z(call.in(1));
  Values dx(call.out());
  for (int64_t n = 0; n < dx.size(); ++n) {
    if (activation != BP_ACTIVATION_RELU) {
      dx[n] = dy[n] * slope<kFlaw>(activation, z[n]);
    } else if (kFlaw == SlopeFlaw::kMasksByProduct) {
      dx[n] = dy[n] * (z[n] <= 0 ? 0 : 1);
    } else {
      dx[n] = z[n] <= 0 ? 0 : dy[n];
    }
  }
  dx.store();
}

template <SlopeFlaw kFlaw>
constexpr Mutation backward() {
  return {.kernels = [](Kernels& kernels) { add_native(kernels, BP_OP_ACTIVATION_BWD, activation_bwd<kFlaw>); }};
}

// ---- silu

// Returns an infinite x unchanged, also -inf.
void silu_of_finite(const Call& call) {
  const Values x(call.in(0));
  Values y(call.out());
  for (int64_t n = 0; n < y.size(); ++n) y[n] = std::isinf(x[n]) ? x[n] : x[n] * logistic(x[n]);
  y.store();
}

// ---- unary

enum class UnaryFlaw {
  kNone,
  kCancels,
  kRoundsProduct,
  kReflects,
  kExponentialsOverflow,
  kThroughInteger,
  kSignOfNan,
  kCeilAddsOne
};

double softplus(double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }
double hard_sigmoid(double x) { return std::fmin(std::fmax(x + 3, 0), 6) / 6; }
double mish(double x) {
  const double e = std::exp(std::fmin(x, 40)), n = e * (e + 2);
  return x * (n / (n + 2));
}

double apply(uint32_t function, double x) {
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
      return x > 0 ? 1 : x < 0 ? -1 : x;
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
      return std::isnan(x) ? x : softplus(x);
    case BP_UNARY_LOG_SIGMOID:
      return std::isnan(x) ? x : -softplus(-x);
    case BP_UNARY_MISH:
      return std::isnan(x) ? x : mish(x);
    case BP_UNARY_HARD_SIGMOID:
      return std::isnan(x) ? x : hard_sigmoid(x);
    default:
      return std::isnan(x) ? x : x * hard_sigmoid(x);
  }
}

// Returns the wrong result if the flaw affects `function`, and the right result otherwise.
template <UnaryFlaw kFlaw>
double flawed(uint32_t function, double x) {
  const auto f = static_cast<float>(x);
  if constexpr (kFlaw == UnaryFlaw::kCancels) {
    if (function == BP_UNARY_EXPM1) return std::exp(f) - 1;
    if (function == BP_UNARY_LOG1P) return std::log(1 + f);
  }
  if constexpr (kFlaw == UnaryFlaw::kRoundsProduct) {
    if (function == BP_UNARY_EXP2) return std::exp(f * 0.69314718f);
  }
  if constexpr (kFlaw == UnaryFlaw::kReflects) {
    if (function == BP_UNARY_ACOS) return 1.5707963f - std::asin(f);
  }
  if constexpr (kFlaw == UnaryFlaw::kExponentialsOverflow) {
    if (function == BP_UNARY_COSH) return (std::exp(f) + std::exp(-f)) * 0.5f;
    if (function == BP_UNARY_ASINH && f > 0) return std::log(f + std::sqrt(f * f + 1));
  }
  if constexpr (kFlaw == UnaryFlaw::kThroughInteger) {
    if (function == BP_UNARY_TRUNC) return std::isnan(x) ? 0 : std::trunc(std::clamp(x, -2147483648.0, 2147483647.0));
  }
  if constexpr (kFlaw == UnaryFlaw::kSignOfNan) {
    if (function == BP_UNARY_SIGN) return x > 0 ? 1 : x < 0 ? -1 : 0;
  }
  if constexpr (kFlaw == UnaryFlaw::kCeilAddsOne) {
    if (function == BP_UNARY_CEIL) return std::floor(x) + 1;
  }
  return apply(function, x);
}

template <UnaryFlaw kFlaw>
void unary(const Call& call) {
  const uint32_t function = call.attributes<bp_unary_attributes>().function;
  const Values x(call.in(0));
  Values y(call.out());
  for (int64_t n = 0; n < y.size(); ++n) y[n] = flawed<kFlaw>(function, x[n]);
  y.store();
}

template <UnaryFlaw kFlaw>
constexpr Mutation of_unary() {
  return {.kernels = [](Kernels& kernels) { add_native(kernels, BP_OP_UNARY, unary<kFlaw>); }};
}

}  // namespace

void add_honest_activations(Kernels& kernels) {
  add_native(kernels, BP_OP_ACTIVATION_BWD, activation_bwd<SlopeFlaw::kNone>);
  add_native(kernels, BP_OP_UNARY, unary<UnaryFlaw::kNone>);
}

const Mutation defect::relu_slope_multiplies = backward<SlopeFlaw::kMasksByProduct>();
const Mutation defect::gelu_slopes_swapped = backward<SlopeFlaw::kOtherGelu>();
const Mutation defect::sigmoid_slope_of_input = backward<SlopeFlaw::kInputForOutput>();
const Mutation defect::gelu_slope_overflows = backward<SlopeFlaw::kPowersOverflow>();
const Mutation defect::silu_keeps_infinity{
    .kernels = [](Kernels& kernels) { add_native(kernels, BP_OP_SILU, silu_of_finite); }};
const Mutation defect::expm1_cancels = of_unary<UnaryFlaw::kCancels>();
const Mutation defect::exp2_rounds_product = of_unary<UnaryFlaw::kRoundsProduct>();
const Mutation defect::acos_by_asin = of_unary<UnaryFlaw::kReflects>();
const Mutation defect::cosh_overflows = of_unary<UnaryFlaw::kExponentialsOverflow>();
const Mutation defect::trunc_through_integer = of_unary<UnaryFlaw::kThroughInteger>();
const Mutation defect::sign_of_nan = of_unary<UnaryFlaw::kSignOfNan>();
const Mutation defect::ceil_adds_one = of_unary<UnaryFlaw::kCeilAddsOne>();

}  // namespace backplane::conformance::mutants
