// SPDX-License-Identifier: Apache-2.0
// Native activation_bwd.
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
  // Powers of a large f32 overflow, and the product of an infinity and a slope of 0 is NaN.
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

}  // namespace

void add_honest_activations(Kernels& kernels) {
  add_native(kernels, BP_OP_ACTIVATION_BWD, activation_bwd<SlopeFlaw::kNone>);
}

const Mutation defect::relu_slope_multiplies = backward<SlopeFlaw::kMasksByProduct>();
const Mutation defect::gelu_slopes_swapped = backward<SlopeFlaw::kOtherGelu>();
const Mutation defect::sigmoid_slope_of_input = backward<SlopeFlaw::kInputForOutput>();
const Mutation defect::gelu_slope_overflows = backward<SlopeFlaw::kPowersOverflow>();

}  // namespace backplane::conformance::mutants
