// SPDX-License-Identifier: Apache-2.0
// How matrix units compute attention and products, in software: honest ones, which the suite must pass, and those that keep
// less than they claim, which it must not.
#pragma once

#include <span>
#include <string_view>

#include "oracle/oracle.hpp"

namespace backplane::conformance::test::units {

// How a dot product is added up.
enum class Adding : uint8_t {
  nearest,         // in f32, one after the other, each sum rounded to nearest
  toward_zero,     // 16 products at a time, aligned to the greatest of them and cut to 24 bits toward zero
  twos_complement  // the same, cut toward minus infinity
};

// What an intermediate operand of a product is held in.
enum class Operand : uint8_t { full, nearest, truncated };

struct Unit {
  std::string_view name{};
  Adding adding = Adding::nearest;
  int64_t splits = 1;      // K is divided so often, and the parts added up in f32
  int64_t half_block = 0;  // products that are added up in f16 before f32 takes them; 0: none, -1: all
  Operand operand = Operand::nearest;
  bool normalises_first =
      false;                 // attention: weights are divided by their sum before they are rounded, not the results
  int64_t key_block = 0;     // attention: keys at a time, under a running maximum; 0: all
  bool half_scores = false;  // attention: scores pass through the operands' dtype
  bool loses_key = false;    // attention: the last key that is seen; products: the last of them
  bool tf32 = false;         // operands of f32 are cut to 11 bits
};

double dot(const Unit& unit, std::span<const double> a, std::span<const double> b);

// The first output of matmul, linear without activation, conv without padding, attention, or quantized_matmul of floats.
oracle::Tensor compute(const Unit& unit, const oracle::Call& call);

}  // namespace backplane::conformance::test::units
