// SPDX-License-Identifier: Apache-2.0
// What the composites' oracles share. Bounds are those of operators.md's table, in units of what they are computed in:
// f64 for f64, else f32; half an ulp of the output comes on top.
#pragma once

#include <cmath>

#include "lanes.hpp"
#include "number.hpp"
#include "sum.hpp"

namespace bp::conformance::oracle {

inline uint32_t computed_in(uint32_t dtype) { return dtype == BP_F64 ? BP_F64 : BP_F32; }
// u of the computation.
inline long double unit(uint32_t dtype) { return roundoff(computed_in(dtype)); }
inline long double unit_ulp(uint32_t dtype, long double value) { return ulp(computed_in(dtype), value); }
inline long double count_of(int64_t n) { return static_cast<long double>(n); }

// `value`, off by `bound` and the last rounding. NaN and infinities are exact; a bound that is none allows anything.
inline Element near(uint32_t dtype, long double value, long double bound) {
  if (!std::isfinite(value)) return exact_value(dtype, encode(dtype, value));
  if (!std::isfinite(bound)) return anything(dtype, value);
  return bounded(dtype, value, bound + ulp(dtype, value) / 2);
}

// An optional operand that is there.
inline const Tensor* optional(const std::vector<Tensor>& operands, size_t index) {
  return index < operands.size() && operands[index].dtype != 0 ? &operands[index] : nullptr;
}
// Its element, or what stands for it.
inline long double value_or(const Tensor* tensor, int64_t index, long double otherwise) {
  return tensor == nullptr ? otherwise : value_at(*tensor, index);
}

// Room for the elements of every output that is there.
inline std::vector<Expected> outputs_of(const Call& call) {
  std::vector<Expected> expected(call.outputs.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    if (call.outputs[i].dtype != 0) expected[i].elements.resize(static_cast<size_t>(call.outputs[i].count()));
  }
  return expected;
}

// The number with every fused activation applied to it, and its own bound.
struct Activated {
  long double value;
  long double bound;
};
Activated activate(uint32_t activation, uint32_t dtype, long double x);
// A sum, then an activation.
Element activated(uint32_t activation, uint32_t dtype, const Verdict& verdict);

}  // namespace bp::conformance::oracle
