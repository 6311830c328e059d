// SPDX-License-Identifier: Apache-2.0
// The oracle computes the expected outputs of an operator. The oracle uses simple code in long
// double or integers, and shares no code with plugins. The oracle handles dense tensors only; the
// test cases handle layouts.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <backplane/plugin.h>

namespace backplane::conformance::oracle {

// A dense, row-major tensor in the representation of its dtype.
struct Tensor {
  uint32_t dtype = 0;  // 0 for an optional operand that is absent
  std::vector<int64_t> shape{};
  std::vector<unsigned char> bytes{};

  int64_t count() const {
    int64_t product = 1;
    for (const int64_t extent : shape) product *= extent;
    return product;
  }
};

// An operator with its data. Each tensor in `outputs` has a dtype and a shape. The tensors in `outputs` contain data
// only if the operator reads its outputs, as scatter and adamw do.
struct Call {
  uint32_t op = 0;
  std::vector<unsigned char> attributes{};  // the operator's complete attribute struct
  std::vector<Tensor> inputs{};
  std::vector<Tensor> outputs{};
  std::vector<uint64_t> scalars{};  // bits of each scalar in its dtype
  // Whether the data have zero mean and random order, which gives sums tighter bounds.
  bool zero_mean = false;
};

// Condition for accepting an element (docs/spec/accuracy.md, "Classes").
enum class Criterion : uint8_t {
  bits,           // all bits are equal, including NaN payloads
  value,          // all bits are equal, except that any NaN equals any other NaN
  unsigned_zero,  // as `value`, except that a zero may have either sign
  bound,          // |got - value| <= bound, with special rules for overflow, NaN and flushing
  signed_bound,   // as `bound`, but a zero must have the sign of the value
  any,            // any result is accepted, for example after an overflow
  nan_or_zero,    // any NaN, or a zero of either sign, for example 0 times infinity
  one_of,         // the bits are one of `choices`, for example after scatter with duplicate indices
};

struct Element {
  long double value = 0;  // the exact result, or the nearest long double
  long double bound = 0;  // maximum absolute error of a result, including half an ulp of the output
  uint64_t bits = 0;      // the result rounded once to the output's dtype
  Criterion criterion = Criterion::value;
};

struct Expected {
  std::vector<Element> elements{};  // in row-major order
  // Accepted bits per element, for Criterion::one_of; otherwise empty.
  std::vector<std::vector<uint64_t>> choices{};
  // Expected root mean square error of each element if operands may be rounded to 16 bits;
  // otherwise empty. A deviation includes the error of the rounding to the output's dtype. The root
  // mean square of error / deviation detects errors that are within the bounds.
  std::vector<long double> deviations{};
};

// Returns a list of one output. An initializer list would copy the output.
inline std::vector<Expected> only(Expected expected) {
  std::vector<Expected> outputs;
  outputs.push_back(std::move(expected));
  return outputs;
}

// Returns one Expected per output of `call`. The arguments of `call` must be legal.
std::vector<Expected> evaluate(const Call& call);

}  // namespace backplane::conformance::oracle
