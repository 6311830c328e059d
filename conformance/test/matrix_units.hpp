// SPDX-License-Identifier: Apache-2.0
// Simulates matrix units that compute attention and GEMM. The suite must pass the honest ones and
// fail the less precise ones.
#pragma once

#include <span>
#include <string_view>

#include "oracle/oracle.hpp"

namespace backplane::conformance::test::units {

// How a dot product is accumulated.
enum class Adding : uint8_t {
  nearest,  // in f32, sequentially, each sum rounded to nearest
  // 16 products at a time, aligned to the largest and truncated to 24 bits toward zero
  toward_zero,
  twos_complement  // the same, but truncated toward minus infinity
};

// The format of an intermediate operand of a product.
enum class Operand : uint8_t { full, nearest, truncated };

struct Unit {
  std::string_view name{};
  Adding adding = Adding::nearest;
  int64_t splits = 1;      // split-K: number of parts, which are accumulated in f32
  int64_t half_block = 0;  // products accumulated in f16 before f32; 0: none, -1: all
  Operand operand = Operand::nearest;
  // attention: divides the weights by their sum before rounding, instead of the results
  bool normalises_first = false;
  int64_t key_block = 0;     // attention: keys per block with a running maximum; 0: all
  bool half_scores = false;  // attention: scores are rounded to the operands' dtype
  bool loses_key = false;    // attention: drops the last visible key; GEMM: drops the last product
  bool tf32 = false;         // f32 operands are truncated to 11 bits
};

double dot(const Unit& unit, std::span<const double> a, std::span<const double> b);

// Computes the first output of matmul, linear without activation, conv without padding, attention,
// or quantized_matmul of floats.
oracle::Tensor compute(const Unit& unit, const oracle::Call& call);

}  // namespace backplane::conformance::test::units
