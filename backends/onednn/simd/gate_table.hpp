// SPDX-License-Identifier: Apache-2.0
// Piecewise polynomials of the gates of gelu, silu and sigmoid, and of the slopes of gelu and silu.
#pragma once

#include <backplane/ops.h>

#include <cstdint>

namespace backplane::onednn {

// A gate is the factor g(x) by which gelu and silu multiply x. With a = |x|, g(-a) is 1 - g(a), and the slope
// of x g(x) has the same symmetry. A table divides the range of `a` into 32 intervals, each with its own
// polynomial. With bits = gate_bits(activation), interval i has the centre i * 2^-bits and the width 2^-bits.
// Its polynomial of t = a - centre approximates the value at -a.
inline constexpr int kGateDegree = 4, kGateIntervals = 32;
struct GateTable {
  alignas(64) float coefficients[kGateDegree + 1][kGateIntervals];  // row k contains the coefficients of t^k
};

// The gates of gelu decrease faster than those of silu and sigmoid, so the intervals of gelu are smaller.
constexpr int gate_bits(uint32_t activation) {
  return activation == BP_ACTIVATION_GELU_ERF || activation == BP_ACTIVATION_GELU_TANH ? 3 : 2;
}
// Returns the end of the last interval.
constexpr float gate_limit(uint32_t activation) {
  return (kGateIntervals - 0.5f) / static_cast<float>(1 << gate_bits(activation));
}

// Return the table of the gate, or of the slope, of `activation`. Several threads may call these functions at
// once.
const GateTable& gate_table(uint32_t activation);
const GateTable& slope_table(uint32_t activation);

}  // namespace backplane::onednn
