// SPDX-License-Identifier: Apache-2.0
// The oracle computes what an operator's outputs should be: naively, in long double or in integers,
// and independently of every plugin. It sees dense tensors only; the harness handles layouts.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <backplane/plugin.h>

namespace backplane::conformance::oracle {

// A dense, row-major tensor in the representation of its dtype.
struct Tensor {
  uint32_t dtype = 0;  // 0: an optional operand that is absent
  std::vector<int64_t> shape{};
  std::vector<unsigned char> bytes{};

  int64_t count() const {
    int64_t product = 1;
    for (const int64_t extent : shape) product *= extent;
    return product;
  }
};

// One operator with its data. `outputs` holds dtypes and shapes, and also bytes if the operator
// reads them (scatter's io, adamw's state).
struct Call {
  uint32_t op = 0;
  std::vector<unsigned char> attributes{};  // the operator's complete attribute struct
  std::vector<Tensor> inputs{};
  std::vector<Tensor> outputs{};
  std::vector<uint64_t> scalars{};  // in the representation of the scalar's dtype
  bool zero_mean = false;           // the data have zero mean and random order, so sums have a tighter bound
};

// When an element is accepted (docs/spec/accuracy.md, "Classes").
enum class Criterion : uint8_t {
  bits,           // exactly these bits, NaN payloads included
  value,          // bit-exact, except that all NaNs are equal
  unsigned_zero,  // as `value`, but a zero may have either sign
  bound,          // |got - value| <= bound, with the rules for overflow, NaN and flushing
  signed_bound,   // as `bound`, and a zero has the sign of the value
  any,            // anything is accepted, since an intermediate overflows
  one_of,         // the bits are one of `choices` (scatter by set with duplicates)
};

struct Element {
  long double value = 0;  // the exact result, or the nearest long double; floats only
  long double bound = 0;  // absolute; includes half an ulp of the output
  uint64_t bits = 0;      // the result rounded once to the output's dtype, for messages
  Criterion criterion = Criterion::value;
};

struct Expected {
  std::vector<Element> elements{};               // row-major
  std::vector<std::vector<uint64_t>> choices{};  // for Criterion::one_of, by element; otherwise empty
  // The expected deviation of each element whose operands may be rounded to 16 bits, including the
  // rounding of the result. The root mean square of error / deviation detects errors that are
  // within the bounds. Empty if no operand may be rounded.
  std::vector<long double> deviations{};
};

// Returns a list of one output. An initializer list would copy the output.
inline std::vector<Expected> only(Expected expected) {
  std::vector<Expected> outputs;
  outputs.push_back(std::move(expected));
  return outputs;
}

// Returns one Expected per output of `call`, whose arguments must be legal.
std::vector<Expected> evaluate(const Call& call);

}  // namespace backplane::conformance::oracle
