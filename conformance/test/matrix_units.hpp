// SPDX-License-Identifier: Apache-2.0
// Simulates matrix units that compute attention and GEMM. The suite must accept the precise units
// and reject the less precise units.
#pragma once

#include <span>
#include <string_view>

#include "oracle/oracle.hpp"

namespace backplane::conformance::test::units {

// Order and rounding of the additions in a dot product.
enum class Adding : uint8_t {
  nearest,  // adds products in f32, one after another, and rounds each sum to nearest
  // Adds 16 products at a time. The terms are aligned to the largest term. Each term and the total
  // are truncated to 24 bits toward zero.
  toward_zero,
  twos_complement  // as toward_zero, but truncates toward minus infinity
};

// Rounding of a computed operand to a 16-bit dtype. `full` keeps the operand in f32.
enum class Operand : uint8_t { full, nearest, truncated };

struct Unit {
  std::string_view name{};
  Adding adding = Adding::nearest;
  int64_t splits = 1;  // split-K: number of parts of K, whose sums are added in f32
  // Number of consecutive products whose sum is accumulated in f16. These sums are then added in f32. 0 means that no
  // products are accumulated in f16, and -1 means that all products are.
  int64_t half_block = 0;
  Operand operand = Operand::nearest;
  // Whether attention divides the weights by their sum before it rounds them. Otherwise attention
  // divides its results by that sum.
  bool normalises_first = false;
  int64_t key_block = 0;     // keys per block of attention, with a running maximum; 0 for all keys
  bool half_scores = false;  // whether attention rounds its scores to the operands' dtype
  // Whether attention drops the last unmasked key, and a GEMM drops the last product.
  bool loses_key = false;
  bool tf32 = false;  // whether f32 operands are rounded to 11 bits
};

double dot(const Unit& unit, std::span<const double> a, std::span<const double> b);

// Computes the first output of matmul, linear without activation, conv without padding, attention,
// or quantized_matmul with float activations.
oracle::Tensor compute(const Unit& unit, const oracle::Call& call);

}  // namespace backplane::conformance::test::units
