// SPDX-License-Identifier: Apache-2.0
// Oracles of compare and select.
#include "axis.hpp"
#include "number.hpp"
#include "operators.hpp"

namespace backplane::conformance::oracle {

namespace {

bool holds(uint32_t predicate, long double a, long double b) {
  switch (predicate) {
    case BP_COMPARE_EQ:
      return a == b;
    case BP_COMPARE_NE:
      return a != b;
    case BP_COMPARE_LT:
      return a < b;
    case BP_COMPARE_LE:
      return a <= b;
    case BP_COMPARE_GT:
      return a > b;
    default:
      return a >= b;
  }
}

}  // namespace

std::vector<Expected> compare(const Call& call) {
  const uint32_t predicate = attributes_of<bp_compare_attributes>(call).predicate;
  const Tensor &a = call.inputs[0], &b = call.inputs[1];
  Expected expected;
  const int64_t count = a.count();
  expected.elements.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    expected.elements.push_back(exact_bits(BP_BOOL, holds(predicate, value_at(a, i), value_at(b, i)) ? 1 : 0));
  }
  return only(std::move(expected));
}

std::vector<Expected> select(const Call& call) {
  const Tensor &condition = call.inputs[0], &a = call.inputs[1], &b = call.inputs[2];
  Expected expected;
  const int64_t count = a.count();
  expected.elements.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    expected.elements.push_back(exact_value(a.dtype, load(load(condition, i) != 0 ? a : b, i)));
  }
  return only(std::move(expected));
}

}  // namespace backplane::conformance::oracle
