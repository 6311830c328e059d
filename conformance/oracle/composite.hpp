// SPDX-License-Identifier: Apache-2.0
// Helpers of the composites' oracles. The bounds are those of the table in docs/spec/accuracy.md,
// in units of the dtype of the computation: f64 for f64, else f32. Half an ulp of the output is
// added to each.
#pragma once

#include <cmath>

#include "axis.hpp"
#include "number.hpp"
#include "sum.hpp"

namespace backplane::conformance::oracle {

inline uint32_t computed_in(uint32_t dtype) { return dtype == BP_F64 ? BP_F64 : BP_F32; }
// The unit roundoff of the computation.
inline long double unit(uint32_t dtype) { return roundoff(computed_in(dtype)); }
inline long double unit_ulp(uint32_t dtype, long double value) { return ulp(computed_in(dtype), value); }
inline long double count_of(int64_t n) { return static_cast<long double>(n); }

// A result within `bound` of `value`, plus the last rounding. NaN and infinities must be exact; an
// infinite bound allows anything.
inline Element near(uint32_t dtype, long double value, long double bound) {
  if (!std::isfinite(value)) return exact_value(dtype, encode(dtype, value));
  if (!std::isfinite(bound)) return anything(dtype, value);
  return bounded(dtype, value, bound + ulp(dtype, value) / 2);
}

// The error of one element that results from rounding one operand of each of its products.
class RoundedOperands {
 public:
  explicit RoundedOperands(uint32_t format) : roundoff_(operand_roundoff(format)) {}
  void add(long double term) {
    if (roundoff_ == 0) return;
    magnitude_ += std::fabs(term);
    squares_ += term * term;
  }
  // The maximum error: each product has one rounding, to nearest or toward zero. Truncation of few
  // terms reaches 2.8 of the factor 4.
  long double bound() const { return 4 * roundoff_ * magnitude_; }
  // The root mean square of rounding errors of random sign, including the last rounding of the
  // result.
  long double deviation(uint32_t dtype, long double value) const {
    return roundoff_ * std::sqrt(squares_) + ulp(dtype, value) / 2;
  }

 private:
  long double roundoff_;
  long double magnitude_ = 0, squares_ = 0;
};
// Allocates the deviations of an output with 16-bit operands.
inline void expect_deviations(Expected& expected, uint32_t format) {
  if (operand_roundoff(format) != 0) expected.deviations.resize(expected.elements.size());
}

// The optional operand, or null if it is absent.
inline const Tensor* optional(const std::vector<Tensor>& operands, size_t index) {
  return index < operands.size() && operands[index].dtype != 0 ? &operands[index] : nullptr;
}
// An element of `tensor`, or `otherwise` if the tensor is absent.
inline long double value_or(const Tensor* tensor, int64_t index, long double otherwise) {
  return tensor == nullptr ? otherwise : value_at(*tensor, index);
}

// The elements along the axis at (o, j).
inline std::vector<long double> elements_along(const Tensor& tensor, const AxisView& view, int64_t o, int64_t j) {
  std::vector<long double> lane(static_cast<size_t>(view.extent));
  for (int64_t i = 0; i < view.extent; ++i) lane[static_cast<size_t>(i)] = value_at(tensor, view.at(o, i, j));
  return lane;
}

// Allocates the elements of every output that is present.
inline std::vector<Expected> outputs_of(const Call& call) {
  std::vector<Expected> expected(call.outputs.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    if (call.outputs[i].dtype != 0) expected[i].elements.resize(static_cast<size_t>(call.outputs[i].count()));
  }
  return expected;
}

}  // namespace backplane::conformance::oracle
