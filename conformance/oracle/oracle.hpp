// SPDX-License-Identifier: Apache-2.0
// The oracle: what an operator's outputs should be, naive, in long double or in integers, and independent of every
// plugin. It sees dense tensors only; layouts are the harness's affair.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <backplane/plugin.h>

namespace backplane::conformance::oracle {

// A dense, row-major tensor in its dtype's own bits.
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

// One operator with its data. `outputs` holds dtypes and shapes; bytes too where the operator reads what is there
// (scatter's io, adamw's state).
struct Call {
  uint32_t op = 0;
  std::vector<unsigned char> attributes{};  // the row's attribute struct, whole
  std::vector<Tensor> inputs{};
  std::vector<Tensor> outputs{};
  std::vector<uint64_t> scalars{};  // bits in the scalar's dtype
  bool zero_mean = false;           // the data are, in random order: sums have a tighter bound
};

// How an element is judged (docs/spec/accuracy.md, "Classes").
enum class Criterion : uint8_t {
  bits,           // these bits; any NaN for a NaN of a computed result is `value`'s affair
  value,          // bit-exact, but any NaN payload equals any other
  unsigned_zero,  // as value, and the sign of a zero is free
  bound,          // |got - value| <= bound, with the rules of overflow, NaN and flushing around it
  signed_bound,   // as bound, and a zero has the sign of the value
  any,            // nothing is demanded (an intermediate overflows)
  one_of,         // the bits are one of `choices` (scatter by set with duplicates)
};

struct Element {
  long double value = 0;  // exact result, or the nearest to it that long double holds; floats only
  long double bound = 0;  // absolute, half an ulp of the output included
  uint64_t bits = 0;      // the result rounded once to the output's dtype: what messages show
  Criterion criterion = Criterion::value;
};

struct Expected {
  std::vector<Element> elements{};               // row-major
  std::vector<std::vector<uint64_t>> choices{};  // for Rule::one_of, by element; empty elsewhere
  // The unit of the statistic for operands rounded to 16 bits, with the result's rounding: the root mean square of
  // errors over these detects faults within the bounds. By element; empty where no operand may be rounded.
  std::vector<long double> deviations{};
};

// Of an operator with one output. A list in braces would copy it.
inline std::vector<Expected> only(Expected expected) {
  std::vector<Expected> outputs;
  outputs.push_back(std::move(expected));
  return outputs;
}

// The outputs of `call`, one Expected each. Arguments are legal; the caller saw to that.
std::vector<Expected> evaluate(const Call& call);

}  // namespace backplane::conformance::oracle
