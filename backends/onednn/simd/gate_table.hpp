// SPDX-License-Identifier: Apache-2.0
// Piecewise polynomials of the gates of gelu, silu and sigmoid, and of the slopes of gelu and silu.
#pragma once

#include <backplane/ops.h>

#include <cstdint>

namespace backplane::onednn {

// A gate is the factor g(x) by which gelu and silu multiply x. For a gate and for the slope of x g(x),
// the value at -a is 1 minus the value at a. A table has a polynomial for each of 32 intervals of
// a = |x|. Interval i has the centre i * 2^-bits, and its width is 2^-bits. The polynomial of
// t = a - centre is the value at -a.
inline constexpr int kGateDegree = 4, kGateIntervals = 32;
struct GateTable {
  alignas(64) float coefficients[kGateDegree + 1][kGateIntervals];  // row k contains the factors of t^k
};

// The gates of gelu decrease faster than those of silu and sigmoid, so their intervals are smaller.
constexpr int gate_bits(uint32_t activation) {
  return activation == BP_ACTIVATION_GELU_ERF || activation == BP_ACTIVATION_GELU_TANH ? 3 : 2;
}
// The end of the last interval.
constexpr float gate_limit(uint32_t activation) {
  return (kGateIntervals - 0.5f) / static_cast<float>(1 << gate_bits(activation));
}

// Return the table of the gate, or of the slope, of an activation that has a gate. Any number of threads
// may call these functions.
const GateTable& gate_table(uint32_t activation);
const GateTable& slope_table(uint32_t activation);

}  // namespace backplane::onednn
