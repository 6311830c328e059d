// SPDX-License-Identifier: Apache-2.0
#include "simd/gate_table.hpp"

#include <cmath>
#include <numbers>

namespace backplane::onednn {
namespace {

// Returns the gate of the activation at -a (gate_table.hpp).
double gate(uint32_t activation, double a) {
  switch (activation) {
    case BP_ACTIVATION_GELU_ERF:
      return std::erfc(a / std::numbers::sqrt2) / 2;
    case BP_ACTIVATION_GELU_TANH:
      return 1 / (1 + std::exp(2 * std::sqrt(2 / std::numbers::pi) * (a + 0.044715 * a * a * a)));
    default:
      return 1 / (1 + std::exp(a));
  }
}

// Returns the derivative of x g(x) at x = -a, where g is the gate.
double slope(uint32_t activation, double a) {
  const double here = gate(activation, a), rest = 1 - here;
  switch (activation) {
    case BP_ACTIVATION_GELU_ERF:
      return here - a * std::exp(-a * a / 2) / std::sqrt(2 * std::numbers::pi);
    case BP_ACTIVATION_GELU_TANH:
      return here - a * here * rest * 2 * std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * a * a);
    default:
      return here - a * here * rest;
  }
}

// Interpolates the curve (the gate or the slope) at the Chebyshev nodes of each interval, by Newton's divided
// differences.
GateTable make_table(uint32_t activation, double (*curve)(uint32_t activation, double a)) {
  constexpr int kNodes = kGateDegree + 1;
  GateTable table;
  const double width = std::ldexp(1.0, -gate_bits(activation));
  for (int interval = 0; interval < kGateIntervals; ++interval) {
    double at[kNodes], difference[kNodes];
    for (int k = 0; k < kNodes; ++k) {
      at[k] = width / 2 * std::cos((k + 0.5) * std::numbers::pi / kNodes);
      difference[k] = curve(activation, interval * width + at[k]);
    }
    for (int order = 1; order < kNodes; ++order) {
      for (int k = kNodes - 1; k >= order; --k)
        difference[k] = (difference[k] - difference[k - 1]) / (at[k] - at[k - order]);
    }
    // Horner's scheme on the coefficients: polynomial = polynomial * (t - at[k]) + difference[k].
    double polynomial[kNodes + 1] = {};
    for (int k = kNodes - 1; k >= 0; --k) {
      for (int power = kNodes - 1; power > 0; --power)
        polynomial[power] = polynomial[power - 1] - at[k] * polynomial[power];
      polynomial[0] = difference[k] - at[k] * polynomial[0];
    }
    for (int power = 0; power < kNodes; ++power)
      table.coefficients[power][interval] = static_cast<float>(polynomial[power]);
  }
  return table;
}

// The tables of one curve, which is the gate or the slope, for all activations.
struct Tables {
  explicit Tables(double (*curve)(uint32_t activation, double a))
      : erf(make_table(BP_ACTIVATION_GELU_ERF, curve)),
        tanh(make_table(BP_ACTIVATION_GELU_TANH, curve)),
        logistic(make_table(BP_ACTIVATION_SIGMOID, curve)) {}
  const GateTable& of(uint32_t activation) const {
    return activation == BP_ACTIVATION_GELU_ERF ? erf : activation == BP_ACTIVATION_GELU_TANH ? tanh : logistic;
  }
  GateTable erf, tanh, logistic;
};

}  // namespace

const GateTable& gate_table(uint32_t activation) {
  static const Tables tables(gate);
  return tables.of(activation);
}
const GateTable& slope_table(uint32_t activation) {
  static const Tables tables(slope);
  return tables.of(activation);
}

}  // namespace backplane::onednn
