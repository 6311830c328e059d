// SPDX-License-Identifier: Apache-2.0
// Helpers for the oracles of composites. The bounds come from the table in docs/spec/accuracy.md,
// plus half an ulp of the output. The bounds are multiples of the unit roundoff of the dtype in
// which the device computes: f64 for f64 operands, and f32 for all others.
#pragma once

#include <cmath>

#include "axis.hpp"
#include "number.hpp"
#include "sum.hpp"

namespace backplane::conformance::oracle {

inline uint32_t computed_in(uint32_t dtype) { return dtype == BP_F64 ? BP_F64 : BP_F32; }
// Returns the unit roundoff of the dtype in which a composite computes `dtype`.
inline long double unit(uint32_t dtype) { return roundoff(computed_in(dtype)); }
inline long double unit_ulp(uint32_t dtype, long double value) { return ulp(computed_in(dtype), value); }
inline long double count_of(int64_t n) { return static_cast<long double>(n); }

// Returns an Element that accepts results within `bound` of `value`, plus half an ulp for the rounding to `dtype`. A
// NaN or an infinity must match exactly. With an infinite bound, the Element accepts any result.
inline Element near(uint32_t dtype, long double value, long double bound) {
  if (!std::isfinite(value)) return exact_value(dtype, encode(dtype, value));
  if (!std::isfinite(bound)) return anything(dtype, value);
  return bounded(dtype, value, bound + ulp(dtype, value) / 2);
}

// The error of a sum of products in which a device rounds one operand of each product.
class RoundedOperands {
 public:
  explicit RoundedOperands(uint32_t format) : roundoff_(operand_roundoff(format)) {}
  void add(long double term) {
    if (roundoff_ == 0) return;
    magnitude_ += std::fabs(term);
    squares_ += term * term;
  }
  // Returns the maximum error. One operand of each product is rounded, to nearest or toward zero.
  // The factor is 4 because truncation causes errors of up to 2.8 * roundoff_ * magnitude_ in sums
  // with few terms.
  long double bound() const { return 4 * roundoff_ * magnitude_; }
  // Returns the root mean square of the errors if their signs are random, including the error of
  // the rounding to `dtype`.
  long double deviation(uint32_t dtype, long double value) const {
    return roundoff_ * std::sqrt(squares_) + ulp(dtype, value) / 2;
  }

 private:
  long double roundoff_;
  long double magnitude_ = 0, squares_ = 0;
};
// Allocates the output's deviations if `format` is a 16-bit float.
inline void expect_deviations(Expected& expected, uint32_t format) {
  if (operand_roundoff(format) != 0) expected.deviations.resize(expected.elements.size());
}

// Returns the optional operand, or null if the operand is absent.
inline const Tensor* optional(const std::vector<Tensor>& operands, size_t index) {
  return index < operands.size() && operands[index].dtype != 0 ? &operands[index] : nullptr;
}
// Returns an element of `tensor`, or `otherwise` if the tensor is absent.
inline long double value_or(const Tensor* tensor, int64_t index, long double otherwise) {
  return tensor == nullptr ? otherwise : value_at(*tensor, index);
}

// Returns the elements along the axis at the outer index `o` and the inner index `j`.
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
